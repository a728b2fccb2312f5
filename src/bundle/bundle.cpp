#include "bundle/bundle.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "core/fit.hpp"

namespace kiln {

struct Bundle::Page {
  std::array<std::uint8_t, kBundlePage> bytes;
};

namespace {

Error read_only() {
  return failure(Code::Refused, "a bundle is only read; make another one with kiln bundle create or merge");
}

}  // namespace

Bundle::Bundle(std::unique_ptr<BundleSource> source, Bytes head, BundleHeader header)
    : source_(std::move(source)), head_(std::move(head)), header_(std::move(header)), pages_(header_.pages.size()),
      groups_(header_.group_sizes.size()) {}

Bundle::~Bundle() {
  for (const auto& page : pages_) delete page.load(std::memory_order_relaxed);
}

Result<std::unique_ptr<Bundle>> Bundle::open(std::unique_ptr<BundleSource> source, const TrustPolicy* policy) {
  const auto named = [&source](Error error) {
    error.message = source->describe() + ": " + error.message;
    return error;
  };
  const auto head = source->head();
  if (!head) return head.error();
  auto header = decode_bundle_header({head->data(), head->size()});
  if (!header) return named(std::move(header).error());
  if (policy != nullptr) {
    auto believed = policy->admit(header->statement(), header->signature ? &*header->signature : nullptr);
    if (!believed) return named(std::move(believed).error());
  }
  if (auto checked = source->check(header->head_size, header->group_sizes); !checked) return std::move(checked).error();
  return std::unique_ptr<Bundle>(new Bundle(std::move(source), *head, std::move(*header)));
}

std::string Bundle::describe() const { return "bundle " + source_->describe(); }

Result<const std::uint8_t*> Bundle::page(std::uint32_t number) {
  std::atomic<const Page*>& kept = pages_[number];
  if (const Page* page = kept.load(std::memory_order_acquire)) return page->bytes.data();
  const std::uint64_t offset = header_.pages_offset() + std::uint64_t{number} * kBundlePage;
  auto page = std::make_unique<Page>();
  std::memcpy(page->bytes.data(), head_.data() + offset, kBundlePage);  // decode_bundle_header saw that it is there
  if (auto checked = check_page(header_, number, page->bytes); !checked) return std::move(checked).error();
  const Page* made = nullptr;
  if (kept.compare_exchange_strong(made, page.get(), std::memory_order_acq_rel)) made = page.release();
  return made->bytes.data();  // somebody else's, where he was quicker
}

Result<std::vector<BundleRow>> Bundle::rows(const Digest& digest, BundleRow::Role role) {
  std::array<std::uint8_t, kRowPrefix> lowest{};
  std::memcpy(lowest.data(), digest.bytes.data(), digest.bytes.size());
  lowest[digest.bytes.size()] = static_cast<std::uint8_t>(role);
  constexpr std::size_t kSame = 33;  // the digest and the role
  // The first page that begins behind it; it may begin in the page before that one.
  const auto behind = std::upper_bound(header_.pages.begin(), header_.pages.end(), lowest,
                                       [](const auto& wanted, const auto& page) { return wanted < page.first; });
  auto number = static_cast<std::uint32_t>(behind - header_.pages.begin());
  if (number > 0) --number;
  std::vector<BundleRow> found;
  for (; number < header_.pages.size(); ++number) {
    if (std::memcmp(header_.pages[number].first.data(), lowest.data(), kSame) > 0) break;
    const auto bytes = page(number);
    if (!bytes) return bytes.error();
    for (std::size_t i = 0; i < rows_of_page(header_, number); ++i) {
      const std::uint8_t* const row = *bytes + i * kBundleRow;
      if (std::memcmp(row, lowest.data(), kSame) != 0) continue;
      auto decoded = decode_row(std::span<const std::uint8_t, kBundleRow>(row, kBundleRow));
      if (!decoded) return std::move(decoded).error();
      found.push_back(*decoded);
    }
  }
  return found;
}

Result<Bytes> Bundle::group(std::uint32_t number) {
  MutexLock lock(mutex_);
  std::optional<Bytes>& kept = groups_[number];
  if (!kept) {
    const auto before = header_.group_sizes.begin() + number;
    const std::uint64_t offset = std::accumulate(header_.group_sizes.begin(), before, header_.head_size);
    auto bytes = source_->group(number, offset, *before);
    if (!bytes) return bytes;
    if (bytes->size() != *before)
      return damaged_bundle("whose group " + std::to_string(number) + " is not as long as it says");
    kept = std::move(*bytes);
  }
  return *kept;
}

Result<Bytes> Bundle::blob(const BlobPlace& place) {
  const auto bytes = group(place.group);
  if (!bytes) return bytes.error();
  // check_page has looked at this; here it is what memory depends on.
  if (place.offset > bytes->size() || place.stored > bytes->size() - place.offset) {
    return damaged_bundle("with a blob that leaves its group");
  }
  return unpacker_.unpack(place, {bytes->data() + place.offset, place.stored});
}

Result<ArtifactBlob> Bundle::artifact(const BlobPlace& place) {
  const auto bytes = blob(place);
  if (!bytes) return bytes.error();
  auto blob = decode_artifact_blob(*bytes);
  if (blob && blob->artifact.target.form == Form::Foreign && header_.version < kForeignBundleVersion) {
    return damaged_bundle("with an artifact of another system, which its version does not have");
  }
  return blob;
}

Result<Closure> Bundle::closure(const BlobPlace& place) {
  const auto bytes = blob(place);
  if (!bytes) return bytes.error();
  return Closure::decode(bytes->view());
}

Result<std::optional<Hit>> Bundle::get(const Key& key) {
  const auto found = rows(key.digest, BundleRow::Role::ByKey);
  if (!found) return found.error();
  if (found->empty()) return std::optional<Hit>();
  auto blob = artifact(found->front().place);
  if (!blob) return std::move(blob).error();
  if (blob->key != key) return damaged_bundle("that has the artifact of one key under another");
  return std::optional<Hit>(Hit{std::move(blob->artifact), Origin::Bundle});
}

Result<std::vector<Closure>> Bundle::closures(const RequestKey& request, std::size_t limit) {
  const auto found = rows(request.digest, BundleRow::Role::ByRequest);
  if (!found) return found.error();
  std::vector<Closure> all;
  for (const BundleRow& row : *found) {
    if (all.size() == limit) break;
    auto told = closure(row.place);
    if (!told) return std::move(told).error();
    all.push_back(std::move(*told));
  }
  return all;
}

Status Bundle::put(const Key&, const Artifact&) { return read_only(); }
Status Bundle::add_closure(const RequestKey&, const Closure&) { return read_only(); }

Result<std::optional<Bundle::Pinned>> Bundle::find(const UnitKey& unit, const Target& wanted, const Bytes* refused) {
  auto found = rows(unit.digest, BundleRow::Role::ByUnit);
  if (!found) return std::move(found).error();
  std::vector<std::pair<unsigned, const BundleRow*>> ranked;
  for (const BundleRow& row : *found) {
    const bool opencl = row.form == Form::OpenClBinary;
    // Of an OpenCL device the row knows four bytes only; all of it is looked at below.
    const auto rank =
        opencl ? (may_be_for(row, wanted) ? fit(wanted, wanted) : std::nullopt) : fit(target_of(row), wanted);
    if (rank) ranked.emplace_back(*rank, &row);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [rank, row] : ranked) {
    auto blob = artifact(row->place);
    if (!blob) return std::move(blob).error();
    if (!may_be_for(*row, blob->artifact.target))
      return damaged_bundle("that has an artifact for one target under another");
    if (!fit(blob->artifact.target, wanted)) continue;
    if (refused != nullptr && blob->artifact.bytes == *refused) continue;
    return std::optional<Pinned>(Pinned{std::move(blob->artifact), blob->key, blob->request});
  }
  return std::optional<Pinned>();
}

Result<std::vector<Target>> Bundle::targets(const UnitKey& unit) {
  const auto found = rows(unit.digest, BundleRow::Role::ByUnit);
  if (!found) return found.error();
  std::vector<Target> all;
  for (const BundleRow& row : *found) {
    if (row.form != Form::OpenClBinary) {
      all.push_back(target_of(row));
      continue;
    }
    auto blob = artifact(row.place);
    if (!blob) return std::move(blob).error();
    all.push_back(std::move(blob->artifact.target));
  }
  return all;
}

}  // namespace kiln
