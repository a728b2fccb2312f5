#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "bundle/bundle.hpp"
#include "bundle/bundle_index.hpp"
#include "core/recipe.hpp"

namespace kiln {
namespace {

constexpr std::uint32_t kLargestDescription = 256 << 20;

// Blobs of a group follow one another with nothing but padding between them.
Status check_layout(std::vector<BlobPlace> places, const std::vector<Bytes>& groups) {
  std::sort(places.begin(), places.end(), [](const BlobPlace& a, const BlobPlace& b) {
    return std::tie(a.group, a.offset, a.stored) < std::tie(b.group, b.offset, b.stored);
  });
  places.erase(std::unique(places.begin(), places.end()), places.end());
  std::vector<std::uint64_t> ends(groups.size());
  for (const BlobPlace& place : places) {
    std::uint64_t& end = ends[place.group];
    if (place.offset < end) return damaged_bundle("with blobs that overlap");
    if (place.offset > end) return damaged_bundle("with bytes between its blobs that belong to none");
    const std::uint64_t used = place.offset + place.stored;
    end = (used + 15) / 16 * 16;
    const Bytes& group = groups[place.group];
    if (end > group.size()) return damaged_bundle("whose group " + std::to_string(place.group) + " ends within a blob");
    const auto padding = group.view().substr(used, end - used);
    if (padding.find_first_not_of('\0') != std::string_view::npos) {
      return damaged_bundle("with something in the padding of a blob");
    }
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (ends[i] != groups[i].size()) return damaged_bundle("with bytes behind the blobs of group " + std::to_string(i));
  }
  return {};
}

bool same_row(const BundleRow& a, const BundleRow& b) { return encode_row(a) == encode_row(b); }

}  // namespace

Result<std::vector<BundleRow>> Bundle::all_rows() {
  std::vector<BundleRow> all;
  for (std::uint32_t number = 0; number < header_.pages.size(); ++number) {
    const auto bytes = page(number);
    if (!bytes) return bytes.error();
    for (std::size_t i = 0; i < rows_of_page(header_, number); ++i) {
      auto row = decode_row(std::span<const std::uint8_t, kBundleRow>(*bytes + i * kBundleRow, kBundleRow));
      if (!row) return std::move(row).error();
      all.push_back(*row);
    }
  }
  return all;
}

Result<BundleDescription> Bundle::description() {
  if (header_.description.raw > kLargestDescription) return damaged_bundle("whose description is too large to be one");
  const auto text = blob(header_.description);
  if (!text) return text.error();
  return BundleDescription::parse(text->view());
}

Result<Bundle::Placed> Bundle::member(BundleDescription::Artifact about) {
  const auto row = rows(about.key.digest, BundleRow::Role::ByKey);
  if (!row) return row.error();
  if (row->empty()) return damaged_bundle("whose description knows an artifact that it does not have");
  auto blob = artifact(row->front().place);
  if (!blob) return std::move(blob).error();
  if (blob->key != about.key) return damaged_bundle("that has the artifact of one key under another");
  Placed found;
  found.member = {
      std::move(about.kind),     about.unit_key,           std::move(blob->artifact), blob->request, blob->key,
      std::move(about.compiler), std::move(about.version), about.compiler_digest};
  found.artifact = row->front().place;
  const auto requests = rows(blob->request.digest, BundleRow::Role::ByRequest);
  if (!requests) return requests.error();
  for (const BundleRow& request : *requests) {
    auto candidate = closure(request.place);
    if (!candidate) return std::move(candidate).error();
    if (key_of(blob->request, *candidate) != blob->key) continue;
    found.member.artifact.closure = std::make_shared<const Closure>(std::move(*candidate));
    found.closure = request.place;
    break;
  }
  return found;
}

Result<std::vector<BundleMember>> Bundle::members(const Advance& advance) {
  auto told = description();
  if (!told) return std::move(told).error();
  std::vector<BundleMember> all;
  for (BundleDescription::Artifact& about : told->artifacts) {
    auto found = member(std::move(about));
    if (!found) return std::move(found).error();
    all.push_back(std::move(found->member));
    if (advance) advance(all.size(), told->artifacts.size());
  }
  return all;
}

Result<BundleImage> Bundle::image() {
  BundleImage image;
  image.head = head_.view().substr(0, header_.head_size);
  for (std::uint32_t number = 0; number < header_.group_sizes.size(); ++number) {
    const auto bytes = group(number);
    if (!bytes) return bytes.error();
    image.groups.emplace_back(bytes->view());
  }
  return image;
}

Status Bundle::check_blobs(const std::vector<BundleRow>& rows) {
  std::vector<BlobPlace> places{header_.description};
  for (const BundleRow& row : rows) places.push_back(row.place);
  std::vector<Bytes> groups;
  for (std::uint32_t number = 0; number < header_.group_sizes.size(); ++number) {
    auto bytes = group(number);
    if (!bytes) return std::move(bytes).error();
    groups.push_back(std::move(*bytes));
  }
  return check_layout(std::move(places), groups);
}

Status Bundle::verify(const Advance& advance) {
  if (auto checked = source_->check(header_.head_size, header_.group_sizes); !checked) return checked;
  const auto there = all_rows();
  if (!there) return there.error();
  if (auto checked = check_blobs(*there); !checked) return checked;
  const auto told = description();
  if (!told) return told.error();
  // What the writer would say of these artifacts is what must be there.
  BundleDescription expected;
  std::vector<IndexEntry> entries;
  for (const BundleDescription::Artifact& about : told->artifacts) {
    const auto found = member(about);
    if (!found) return found.error();
    const BundleMember& is = found->member;
    const Closure* const closure = is.artifact.closure.get();
    if (closure != nullptr && !travels(*closure))
      return damaged_bundle("with a closure that names places of one machine");
    entries.push_back({is.unit, is.artifact.target, is.key, is.request, found->artifact, found->closure});
    expected.artifacts.push_back(kiln::describe(is, closure));
    if (advance) advance(entries.size(), told->artifacts.size());
  }
  const auto read_back = BundleDescription::parse(expected.encode());
  if (!read_back || read_back->artifacts != told->artifacts) {
    return damaged_bundle("whose description says other things than its artifacts do");
  }
  const bool foreign = std::any_of(entries.begin(), entries.end(),
                                   [](const IndexEntry& entry) { return entry.target.form == Form::Foreign; });
  if (foreign != (header_.version == kForeignBundleVersion)) {
    return damaged_bundle("of format version " + std::to_string(header_.version) +
                          ", which is not that of what it has");
  }
  const std::vector<BundleRow> due = index_rows(entries);
  if (!std::equal(due.begin(), due.end(), there->begin(), there->end(), same_row)) {
    return damaged_bundle("whose rows and description disagree");
  }
  return {};
}

}  // namespace kiln
