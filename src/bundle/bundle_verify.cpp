// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "bundle/bundle.hpp"
#include "bundle/bundle_index.hpp"
#include "bundle/provenance.hpp"
#include "core/recipe.hpp"

namespace kiln {
namespace {

// Checks that the blobs of a group follow one another with only padding between them.
Status check_layout(std::vector<BlobLocation> locations, BundleSource& source, const std::vector<BundleGroup>& groups) {
  std::sort(locations.begin(), locations.end(), [](const BlobLocation& a, const BlobLocation& b) {
    return std::tie(a.group, a.offset, a.stored) < std::tie(b.group, b.offset, b.stored);
  });
  locations.erase(std::unique(locations.begin(), locations.end()), locations.end());
  std::vector<std::uint64_t> ends(groups.size());
  for (const BlobLocation& location : locations) {
    std::uint64_t& end = ends[location.group];
    if (location.offset < end) return corrupt_bundle("overlapping blobs");
    if (location.offset > end) return corrupt_bundle("unreferenced bytes between blobs");
    const std::uint64_t used = location.offset + location.stored;
    end = (used + 15) / 16 * 16;
    const BundleGroup& group = groups[location.group];
    if (end > group.size) return corrupt_bundle("group " + std::to_string(location.group) + " ends within a blob");
    std::array<std::uint8_t, 16> padding{};
    if (Status read = source.read_group(group, used, std::span(padding).first(end - used)); !read) return read;
    if (padding != std::array<std::uint8_t, 16>{}) return corrupt_bundle("nonzero padding after a blob");
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (ends[i] != groups[i].size)
      return corrupt_bundle("trailing bytes after the blobs of group " + std::to_string(i));
  }
  return {};
}

std::span<std::uint8_t> writable_bytes(std::string& text) {
  return {reinterpret_cast<std::uint8_t*>(text.data()), text.size()};
}

bool same_row(const BundleRow& a, const BundleRow& b) { return encode_row(a) == encode_row(b); }

}  // namespace

Result<std::vector<BundleRow>> Bundle::all_rows() {
  std::vector<BundleRow> all;
  for (std::uint32_t number = 0; number < header_.pages.size(); ++number) {
    const auto bytes = page(number);
    if (!bytes) return bytes.error();
    for (std::size_t i = 0; i < page_row_count(header_, number); ++i) {
      auto row = decode_row(std::span<const std::uint8_t, kBundleRow>(*bytes + i * kBundleRow, kBundleRow));
      if (!row) return std::move(row).error();
      all.push_back(*row);
    }
  }
  return all;
}

Result<BundleDescription> Bundle::description() {
  if (header_.description.raw > limits_.description) {
    return exceeds("description has more than " + std::to_string(limits_.description) + " bytes");
  }
  const auto text = blob(header_.description);
  if (!text) return text.error();
  // Each artifact has a row. Rows are stored uncompressed, so their number cannot be inflated.
  auto reported = BundleDescription::parse(text->view(), {limits_.values, header_.row_count});
  if (reported || reported.error().code != Code::Unsupported) return reported;
  return exceeds(reported.error().message.substr(std::string_view("corrupt bundle: ").size()));
}

Result<Digest> Bundle::index_digest() {
  Sha256 digest;
  for (std::uint32_t number = 0; number < header_.pages.size(); ++number) {
    const auto bytes = page(number);
    if (!bytes) return bytes.error();
    digest.add(std::span<const std::uint8_t>(*bytes, kBundlePage));
  }
  return digest.finish();
}

Status Bundle::check_provenance(const std::string& statement) {
  if (statement.empty()) return {};
  const auto provenance = Provenance::parse(statement);
  if (!provenance) return corrupt_bundle("provenance " + provenance.error().message);
  const auto index = index_digest();
  if (!index) return index.error();
  if (provenance->is_about(*index)) return {};
  return corrupt_bundle("provenance is about other content: none of its subjects has the SHA-256 of the index, " +
                        index->hex());
}

Result<Bundle::LocatedMember> Bundle::member(BundleDescription::Artifact about) {
  const auto row = rows(about.key.digest, BundleRow::Role::ByKey);
  if (!row) return row.error();
  if (row->empty()) return corrupt_bundle("description lists a missing artifact");
  auto blob = artifact(row->front().location);
  if (!blob) return std::move(blob).error();
  if (blob->key != about.key) return corrupt_bundle("artifact key does not match its index row");
  LocatedMember found;
  found.member = {
      std::move(about.kind),     about.unit_key,           std::move(blob->artifact), blob->request, blob->key,
      std::move(about.compiler), std::move(about.version), about.compiler_digest};
  found.artifact = row->front().location;
  const auto requests = rows(blob->request.digest, BundleRow::Role::ByRequest);
  if (!requests) return requests.error();
  for (const BundleRow& request : *requests) {
    auto candidate = dependency_set(request.location);
    if (!candidate) return std::move(candidate).error();
    if (artifact_key(blob->request, *candidate) != blob->key) continue;
    found.member.artifact.dependency_set = std::make_shared<const DependencySet>(std::move(*candidate));
    found.dependency_set = request.location;
    break;
  }
  return found;
}

Result<std::vector<BundleMember>> Bundle::members(const ProgressCallback& advance,
                                                  const std::function<bool(const Target&)>& wanted) {
  auto reported = description();
  if (!reported) return std::move(reported).error();
  if (wanted) std::erase_if(reported->artifacts, [&](const auto& about) { return !wanted(about.target); });
  std::vector<BundleMember> all;
  for (BundleDescription::Artifact& about : reported->artifacts) {
    auto found = member(std::move(about));
    if (!found) return std::move(found).error();
    all.push_back(std::move(found->member));
    if (advance) advance(all.size(), reported->artifacts.size());
  }
  return all;
}

Result<BundleImage> Bundle::image() {
  // `check` compares with the current sizes of the source, so no memory is allocated for missing bytes.
  if (auto checked = source_->check(header_.head_size, header_.group_sizes); !checked)
    return std::move(checked).error();
  BundleImage image;
  image.head.resize(header_.head_size);
  if (Status read = source_->read_head(0, writable_bytes(image.head)); !read) return std::move(read).error();
  const auto header = decode_bundle_header(as_bytes(image.head), image.head.size());
  if (!header || header->digest != header_.digest || header->signature != header_.signature) {
    return corrupt_bundle("header changed since the bundle was opened");
  }
  for (const BundleGroup& group : groups_) {
    std::string& bytes = image.groups.emplace_back(group.size, '\0');
    if (Status read = source_->read_group(group, 0, writable_bytes(bytes)); !read) return std::move(read).error();
  }
  return image;
}

Status Bundle::check_blobs(const std::vector<BundleRow>& rows) {
  std::vector<BlobLocation> locations{header_.description};
  for (const BundleRow& row : rows) locations.push_back(row.location);
  return check_layout(std::move(locations), *source_, groups_);
}

Status Bundle::verify(const ProgressCallback& advance) {
  if (auto checked = source_->check(header_.head_size, header_.group_sizes); !checked) return checked;
  const auto there = all_rows();
  if (!there) return there.error();
  if (auto checked = check_blobs(*there); !checked) return checked;
  const auto reported = description();
  if (!reported) return reported.error();
  if (auto checked = check_provenance(reported->provenance); !checked) return checked;
  // The stored data must be what the writer would write for these artifacts.
  BundleDescription expected;
  std::vector<IndexEntry> entries;
  for (const BundleDescription::Artifact& about : reported->artifacts) {
    const auto found = member(about);
    if (!found) return found.error();
    const BundleMember& is = found->member;
    const DependencySet* const dependency_set = is.artifact.dependency_set.get();
    if (dependency_set != nullptr && !is_shippable(*dependency_set))
      return corrupt_bundle("dependency set with machine-specific paths");
    entries.push_back({is.unit, is.artifact.target, is.key, is.request, found->artifact, found->dependency_set});
    expected.artifacts.push_back(kiln::describe(is, dependency_set));
    if (advance) advance(entries.size(), reported->artifacts.size());
  }
  const auto read_back = BundleDescription::parse(expected.encode());
  if (!read_back || read_back->artifacts != reported->artifacts) {
    return corrupt_bundle("description does not match its artifacts");
  }
  const bool external = std::any_of(entries.begin(), entries.end(),
                                    [](const IndexEntry& entry) { return entry.target.form == Form::External; });
  if (external != (header_.version == kExternalBundleVersion)) {
    return corrupt_bundle("format version " + std::to_string(header_.version) + " does not match the contents");
  }
  const std::vector<BundleRow> due = index_rows(entries);
  if (!std::equal(due.begin(), due.end(), there->begin(), there->end(), same_row)) {
    return corrupt_bundle("index rows and description disagree");
  }
  return {};
}

}  // namespace kiln
