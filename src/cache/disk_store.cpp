// SPDX-License-Identifier: Apache-2.0
#include "cache/disk_store.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "cache/entry_format.hpp"
#include "cache/hint_format.hpp"

namespace kiln {
namespace {

using namespace std::chrono_literals;

// The journal may have missed changes after a crash or if appends of another host were lost.
constexpr auto kScanEvery = 1h;
// Holds the header and the newest dependency set of a CUB unit (70 KB) in one read.
constexpr std::size_t kFirstHint = 96 * 1024;
constexpr std::size_t kMaxHintsBytes = std::size_t{256} << 20;

constexpr const char* kUntrusted = "another user owns this file or can write to it";

std::span<const std::uint8_t> span_of(const Bytes& bytes) { return {bytes.data(), bytes.size()}; }

// Returns the encoded dependency sets of a file; empty if the file is corrupt.
std::vector<std::string_view> hints_in(const RequestKey& request, const Bytes& file) {
  std::vector<std::string_view> hints;
  const auto head = decode_hint_head(request, span_of(file));
  if (!head) return hints;
  for (const HintHeader::Slot& slot : head->slots) {
    if (const std::string_view hint = hint_at(slot, span_of(file)); !hint.empty()) hints.push_back(hint);
  }
  return hints;
}

}  // namespace

Result<std::unique_ptr<DiskStore>> DiskStore::open(Options options, EventEmitter emitter, const Clock& clock) {
  while (options.root.size() > 1 && options.root.back() == '/') options.root.pop_back();
  if (options.root.empty() || options.root.front() != '/') {
    return make_error(Code::InvalidArgument, "a cache directory must be an absolute path, not '" + options.root + "'");
  }
  return std::unique_ptr<DiskStore>(new DiskStore(std::move(options), std::move(emitter), clock));
}

DiskStore::DiskStore(Options options, EventEmitter emitter, const Clock& clock)
    : options_(std::move(options)), emitter_(std::move(emitter)), clock_(clock),
      directory_({options_.root, options_.read_only, options_.trusted_owners}, clock), journal_(directory_),
      history_(directory_, journal_), activity_(directory_) {}

void DiskStore::drop(const char* name, std::uint64_t inode, const std::string& key, const std::string& reason) {
  const bool removed = directory_.remove_corrupt(name, inode);
  if (!emitter_) return;
  Event event;
  event.kind = Event::Kind::EntryDropped;
  event.origin = "disk";
  event.key = key;
  event.message =
      reason + (removed ? "; removed " : "; ignored ") + join_path(root(), CacheDirectory::kVersion) + "/" + name;
  emitter_.emit(event);
}

Result<std::optional<Hit>> DiskStore::get(const ArtifactKey& key, const RequestContext& /*context*/) {
  const ShardedName name("entries", key.digest);
  auto file = directory_.read(name.c_str(), kMaxEntryBytes + EntryHeader::kSize);
  if (!file) return std::move(file).error();
  if (!*file) return std::optional<Hit>();
  if (!(*file)->is_trusted) {
    drop(name.c_str(), (*file)->inode, key.hex(), kUntrusted);
    return std::optional<Hit>();
  }
  auto artifact = decode_entry(key, (*file)->bytes);
  if (!artifact) {
    drop(name.c_str(), (*file)->inode, key.hex(), artifact.error().message);
    return std::optional<Hit>();
  }
  // Built in place: each move of an artifact through a `Result` costs 1 % of a hit.
  Result<std::optional<Hit>> hit = std::optional<Hit>();
  hit->emplace();
  (*hit)->artifact = std::move(*artifact);
  (*hit)->origin = Origin::Disk;
  return hit;
}

bool DiskStore::remove(const ArtifactKey& key) {
  return directory_.remove_corrupt(ShardedName("entries", key.digest).c_str(), 0);
}

Status DiskStore::put(const ArtifactKey& key, const Artifact& artifact, const RequestContext& /*context*/) {
  const std::string head = encode_entry_header(key, artifact);
  const std::uint64_t size = head.size() + artifact.bytes.size();
  if (size > kMaxEntryBytes || (options_.max_bytes != 0 && size > options_.max_bytes)) {
    return make_error(Code::Denied, "an artifact of " + std::to_string(artifact.bytes.size()) +
                                        " bytes is larger than the cache size limit");
  }
  return publish(ShardedName("entries", key.digest), {head, artifact.bytes.view()});
}

Status DiskStore::publish(const ShardedName& name, std::initializer_list<std::string_view> parts) {
  bool due = false;
  Status published =
      directory_.publish(name.str(), parts, [&](std::int64_t bytes) { due = scan_is_due(journal_.add(bytes)); });
  if (published && due)
    (void)gc().has_value();  // the entry is stored, so a failed collection is not an error of this call
  return published;
}

bool DiskStore::scan_is_due(const std::optional<UsageJournal::Total>& total) const {
  if (!total || clock_.wall() - total->scanned_at > kScanEvery) return true;
  return options_.max_bytes != 0 && total->bytes > options_.max_bytes;
}

Result<GcResult> DiskStore::gc() {
  {
    const MutexLock lock(mutex_);
    if (collecting_) return GcResult{.busy = true};
    collecting_ = true;
  }
  // An exception (out of memory) must not block later collections.
  struct ScopedCollecting {
    DiskStore& store;
    ~ScopedCollecting() {
      const MutexLock lock(store.mutex_);
      store.collecting_ = false;
    }
  };
  auto collected = [&] {
    const ScopedCollecting ended{*this};
    return collect_garbage(directory_, journal_, options_.max_bytes);
  }();
  if (collected && collected->removed_files != 0) {
    emitter_.emit(Event::Kind::Evicted, "disk",
                  std::to_string(collected->removed_files) + " of " + std::to_string(collected->files) +
                      " files removed from " + root() + ", " + std::to_string(collected->removed_bytes) + " of " +
                      std::to_string(collected->bytes) + " bytes");
  }
  return collected;
}

Result<std::vector<DependencySet>> DiskStore::dependency_sets(const RequestKey& request, std::size_t limit,
                                                              const RequestContext& /*context*/) {
  std::vector<DependencySet> dependency_sets;
  if (limit == 0) return dependency_sets;
  const ShardedName name("hints", request.digest);
  for (std::size_t maximum = limit == 1 ? kFirstHint : kMaxHintsBytes;; maximum = kMaxHintsBytes) {
    auto file = directory_.read(name.c_str(), maximum);
    if (!file) return std::move(file).error();
    if (!*file) return dependency_sets;
    if (!(*file)->is_trusted) {
      drop(name.c_str(), (*file)->inode, request.hex(), kUntrusted);
      return dependency_sets;
    }
    const auto bytes = span_of((*file)->bytes);
    const auto head = decode_hint_head(request, bytes);
    if (head && limit == 1 && maximum == kFirstHint && !head->slots.empty() && (*file)->size > bytes.size() &&
        head->slots.front().offset + head->slots.front().size > bytes.size()) {
      continue;  // the newest dependency set is larger than the first read
    }
    bool corrupt = !head || head->file_size() != (*file)->size;
    for (std::size_t i = 0; head && i < head->slots.size() && dependency_sets.size() < limit; ++i) {
      auto dependency_set = DependencySet::decode(hint_at(head->slots[i], bytes));
      corrupt |= !dependency_set;
      if (dependency_set) dependency_sets.push_back(std::move(*dependency_set));
      if (limit == 1) break;  // the other slots were not read
    }
    if (corrupt) drop(name.c_str(), (*file)->inode, request.hex(), "the hint file is corrupt");
    return dependency_sets;
  }
}

Status DiskStore::add_dependency_set(const RequestKey& request, const DependencySet& dependency_set,
                                     const RequestContext& /*context*/) {
  const ShardedName name("hints", request.digest);
  const std::string encoded = dependency_set.encode();
  auto file = directory_.read(name.c_str(), kMaxHintsBytes);
  std::vector<std::string_view> hints;
  if (file && *file) hints = hints_in(request, (*file)->bytes);
  if (!hints.empty() && hints.front() == encoded) return {};
  std::erase(hints, encoded);
  hints.insert(hints.begin(), encoded);
  // If two writers race, one dependency set is lost. That costs one compile later.
  return publish(name, {encode_hints(request, hints)});
}

bool DiskStore::is_writable() {
  if (options_.read_only) return false;
  const auto directory = directory_.open();
  return directory && (*directory == nullptr || (*directory)->writable);
}

std::string DiskStore::describe() const { return "disk " + root(); }

Status DiskStore::check() {
  const auto directory = directory_.open();
  if (!directory) return directory.error();
  return {};
}

}  // namespace kiln
