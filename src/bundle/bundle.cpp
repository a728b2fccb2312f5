// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "core/compatibility.hpp"

namespace kiln {

struct Bundle::Page {
  std::array<std::uint8_t, kBundlePage> bytes;
};

namespace {

Error read_only() {
  return make_error(Code::Denied,
                    "a bundle is read-only; create another one with 'kiln bundle create' or 'kiln bundle merge'");
}

// Sufficient for the header of a bundle with 3,000 artifacts.
constexpr std::uint64_t kFirstRead = 16 << 10;

Result<BundleHeader> read_header(BundleSource& source) {
  const auto available = source.head_size();
  if (!available) return available.error();
  std::vector<std::uint8_t> bytes(std::min(*available, kFirstRead));
  if (Status read = source.read_head(0, bytes); !read) return std::move(read).error();
  const auto size = bundle_header_size(bytes);
  if (!size) return size.error();
  if (*size > *available) return corrupt_bundle("truncated header");
  if (const std::size_t had = bytes.size(); *size > had) {
    bytes.resize(*size);
    if (Status read = source.read_head(had, std::span(bytes).subspan(had)); !read) return std::move(read).error();
  }
  return decode_bundle_header(bytes, *available);
}

std::vector<BundleGroup> groups_of(const BundleHeader& header) {
  std::vector<BundleGroup> groups;
  groups.reserve(header.group_sizes.size());
  std::uint64_t offset = header.head_size;
  for (const std::uint64_t size : header.group_sizes) {
    groups.push_back({static_cast<std::uint32_t>(groups.size()), offset, size});
    offset += size;  // no overflow: `decode_bundle_header` has checked the sizes
  }
  return groups;
}

Error named(Error error, const BundleSource& source) {
  error.message = source.describe() + ": " + error.message;
  return error;
}

Status verified(const BundleHeader& header, const TrustPolicy& policy) {
  return policy.verify_bundle(header.statement(), header.signature ? &*header.signature : nullptr);
}

}  // namespace

Bundle::Bundle(std::unique_ptr<BundleSource> source, BundleHeader header, const BundleLimits& limits, Status trusted)
    : source_(std::move(source)), header_(std::move(header)), groups_(groups_of(header_)), limits_(limits),
      trusted_(std::move(trusted)), pages_(header_.pages.size()) {}

Bundle::~Bundle() {
  for (const auto& page : pages_) delete page.load(std::memory_order_relaxed);
}

Result<std::unique_ptr<Bundle>> Bundle::open(std::unique_ptr<BundleSource> source, const TrustPolicy* policy,
                                             const BundleLimits& limits) {
  auto header = read_header(*source);
  if (!header) return named(std::move(header).error(), *source);
  Status trusted = policy == nullptr ? Status() : verified(*header, *policy);
  if (!trusted) return named(std::move(trusted).error(), *source);
  if (auto checked = source->check(header->head_size, header->group_sizes); !checked) return std::move(checked).error();
  return std::unique_ptr<Bundle>(new Bundle(std::move(source), std::move(*header), limits, {}));
}

Result<std::unique_ptr<Bundle>> Bundle::look(std::unique_ptr<BundleSource> source, const TrustPolicy& policy) {
  auto header = read_header(*source);
  if (!header) return named(std::move(header).error(), *source);
  Status trusted = verified(*header, policy);
  if (auto checked = source->check(header->head_size, header->group_sizes); !checked) return std::move(checked).error();
  const BundleLimits& limits = trusted ? kTrustedLimits : kUntrustedLimits;
  return std::unique_ptr<Bundle>(new Bundle(std::move(source), std::move(*header), limits, std::move(trusted)));
}

Error Bundle::exceeds(std::string what) const {
  if (limits_ == kTrustedLimits) return corrupt_bundle(std::move(what));
  return make_error(Code::Denied, "untrusted bundle: " + std::move(what) +
                                      ", which is accepted only from a trusted bundle; trust its key "
                                      "('kiln help key') or set trust.unsigned");
}

std::string Bundle::describe() const { return "bundle " + source_->describe(); }

Result<const std::uint8_t*> Bundle::page(std::uint32_t number) {
  std::atomic<const Page*>& kept = pages_[number];
  if (const Page* page = kept.load(std::memory_order_acquire)) return page->bytes.data();
  const std::uint64_t offset = header_.pages_offset() + std::uint64_t{number} * kBundlePage;
  auto page = std::make_unique_for_overwrite<Page>();
  if (Status read = source_->read_head(offset, page->bytes); !read) return std::move(read).error();
  if (auto checked = check_page(header_, number, page->bytes); !checked) return std::move(checked).error();
  const Page* made = nullptr;
  if (kept.compare_exchange_strong(made, page.get(), std::memory_order_acq_rel)) made = page.release();
  return made->bytes.data();  // the page of another thread if that thread was faster
}

Result<std::vector<BundleRow>> Bundle::rows(const Digest& digest, BundleRow::Role role) {
  std::array<std::uint8_t, kRowPrefix> lowest{};
  std::memcpy(lowest.data(), digest.bytes.data(), digest.bytes.size());
  lowest[digest.bytes.size()] = static_cast<std::uint8_t>(role);
  constexpr std::size_t kSame = 33;  // the digest and the role
  // The first page that starts after the row; the row may start in the page before it.
  const auto behind = std::upper_bound(header_.pages.begin(), header_.pages.end(), lowest,
                                       [](const auto& wanted, const auto& page) { return wanted < page.first; });
  auto number = static_cast<std::uint32_t>(behind - header_.pages.begin());
  if (number > 0) --number;
  std::vector<BundleRow> found;
  for (; number < header_.pages.size(); ++number) {
    if (std::memcmp(header_.pages[number].first.data(), lowest.data(), kSame) > 0) break;
    const auto bytes = page(number);
    if (!bytes) return bytes.error();
    for (std::size_t i = 0; i < page_row_count(header_, number); ++i) {
      const std::uint8_t* const row = *bytes + i * kBundleRow;
      if (std::memcmp(row, lowest.data(), kSame) != 0) continue;
      auto decoded = decode_row(std::span<const std::uint8_t, kBundleRow>(row, kBundleRow));
      if (!decoded) return std::move(decoded).error();
      found.push_back(*decoded);
    }
  }
  return found;
}

Result<Bytes> Bundle::blob(const BlobLocation& location) {
  // `check_page` has checked this; it is repeated because memory safety depends on it.
  if (location.group >= groups_.size()) return corrupt_bundle("blob in a nonexistent group");
  const BundleGroup& group = groups_[location.group];
  if (location.offset > group.size || location.stored > group.size - location.offset) {
    return corrupt_bundle("blob extends beyond its group");
  }
  if (location.raw > limits_.blob) return exceeds("blob has " + std::to_string(location.raw) + " bytes");
  if (limits_.total != UINT64_MAX && unpacked_.fetch_add(location.raw) + location.raw > limits_.total) {
    return exceeds("decompressed size is more than " + std::to_string(limits_.total) + " bytes");
  }
  return unpacker_.unpack(location, *source_, group);
}

Result<ArtifactBlob> Bundle::artifact(const BlobLocation& location) {
  const auto bytes = blob(location);
  if (!bytes) return bytes.error();
  auto blob = decode_artifact_blob(*bytes);
  if (blob && blob->artifact.target.form == Form::External && header_.version < kExternalBundleVersion) {
    return corrupt_bundle("artifact of an external system in a bundle of format version 1");
  }
  return blob;
}

Result<DependencySet> Bundle::dependency_set(const BlobLocation& location) {
  const auto bytes = blob(location);
  if (!bytes) return bytes.error();
  return DependencySet::decode(bytes->view());
}

Result<std::optional<Hit>> Bundle::get(const ArtifactKey& key, const RequestContext& /*context*/) {
  const auto found = rows(key.digest, BundleRow::Role::ByKey);
  if (!found) return found.error();
  if (found->empty()) return std::optional<Hit>();
  auto blob = artifact(found->front().location);
  if (!blob) return std::move(blob).error();
  if (blob->key != key) return corrupt_bundle("artifact key does not match its index row");
  return std::optional<Hit>(Hit{std::move(blob->artifact), Origin::Bundle});
}

Result<std::vector<DependencySet>> Bundle::dependency_sets(const RequestKey& request, std::size_t limit,
                                                           const RequestContext& /*context*/) {
  const auto found = rows(request.digest, BundleRow::Role::ByRequest);
  if (!found) return found.error();
  std::vector<DependencySet> all;
  for (const BundleRow& row : *found) {
    if (all.size() == limit) break;
    auto reported = dependency_set(row.location);
    if (!reported) return std::move(reported).error();
    all.push_back(std::move(*reported));
  }
  return all;
}

Status Bundle::put(const ArtifactKey&, const Artifact&, const RequestContext&) { return read_only(); }
Status Bundle::add_dependency_set(const RequestKey&, const DependencySet&, const RequestContext&) {
  return read_only();
}

Result<std::optional<Bundle::Match>> Bundle::find(const UnitKey& unit, const Target& wanted, const Bytes* rejected) {
  auto found = rows(unit.digest, BundleRow::Role::ByUnit);
  if (!found) return std::move(found).error();
  std::vector<std::pair<unsigned, const BundleRow*>> ranked;
  for (const BundleRow& row : *found) {
    const bool opencl = row.form == Form::OpenClBinary;
    // The row of an OpenCL device has only four bytes of its digest; the full comparison follows below.
    const auto rank = opencl ? (may_match(row, wanted) ? compatibility_rank(wanted, wanted) : std::nullopt)
                             : compatibility_rank(target_of(row), wanted);
    if (rank) ranked.emplace_back(*rank, &row);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [rank, row] : ranked) {
    auto blob = artifact(row->location);
    if (!blob) return std::move(blob).error();
    if (!may_match(*row, blob->artifact.target)) return corrupt_bundle("artifact target does not match its index row");
    if (!compatibility_rank(blob->artifact.target, wanted)) continue;
    if (rejected != nullptr && blob->artifact.bytes == *rejected) continue;
    return std::optional<Match>(Match{std::move(blob->artifact), blob->key, blob->request});
  }
  return std::optional<Match>();
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
    auto blob = artifact(row.location);
    if (!blob) return std::move(blob).error();
    all.push_back(std::move(blob->artifact.target));
  }
  return all;
}

}  // namespace kiln
