#include "store/disk_store.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "store/entry_format.hpp"
#include "store/hint_format.hpp"

namespace kiln {
namespace {

using namespace std::chrono_literals;

// The journal may have missed something: a crash, a host whose appends were lost.
constexpr auto kScanEvery = 1h;
// Holds the head and the newest of a CUB unit's closures (70 KB) in one read.
constexpr std::size_t kFirstHint = 96 * 1024;
constexpr std::size_t kLargestHints = std::size_t{256} << 20;

std::span<const std::uint8_t> span_of(const Bytes& bytes) { return {bytes.data(), bytes.size()}; }

// The closures of a file, as they were encoded; empty where it is damaged.
std::vector<std::string_view> hints_in(const RequestKey& request, const Bytes& file) {
  std::vector<std::string_view> hints;
  const auto head = decode_hint_head(request, span_of(file));
  if (!head) return hints;
  for (const HintHead::Slot& slot : head->slots) {
    if (const std::string_view hint = hint_in(slot, span_of(file)); !hint.empty()) hints.push_back(hint);
  }
  return hints;
}

}  // namespace

Result<std::unique_ptr<DiskStore>> DiskStore::open(Options options, Observer observer, const Clock& clock) {
  while (options.root.size() > 1 && options.root.back() == '/') options.root.pop_back();
  if (options.root.empty() || options.root.front() != '/') {
    return failure(Code::InvalidArgument, "a cache directory must be an absolute path, not '" + options.root + "'");
  }
  return std::unique_ptr<DiskStore>(new DiskStore(std::move(options), std::move(observer), clock));
}

DiskStore::DiskStore(Options options, Observer observer, const Clock& clock)
    : options_(std::move(options)), observer_(std::move(observer)), clock_(clock),
      directory_({options_.root, options_.read_only, options_.trusted_owners}, clock), journal_(directory_),
      history_(directory_, journal_) {}

void DiskStore::drop(const char* name, std::uint64_t inode, const std::string& key, const std::string& why) {
  const bool removed = directory_.drop(name, inode);
  if (!observer_) return;
  Event event;
  event.kind = Event::Kind::EntryDropped;
  event.origin = "disk";
  event.key = key;
  event.message =
      why + (removed ? "; removed " : "; ignored ") + join_path(root(), CacheDirectory::kVersion) + "/" + name;
  observer_.tell(event);
}

Result<std::optional<Hit>> DiskStore::get(const Key& key) {
  const ShardedName name("entries", key.digest);
  auto file = directory_.read(name.c_str(), kLargestEntry + EntryHeader::kSize);
  if (!file) return std::move(file).error();
  if (!*file) return std::optional<Hit>();
  auto artifact = decode_entry(key, (*file)->bytes);
  if (!artifact) {
    drop(name.c_str(), (*file)->inode, key.hex(), artifact.error().message);
    return std::optional<Hit>();
  }
  // Built in place: each move of an artifact through a Result costs a hundredth of a hit.
  Result<std::optional<Hit>> hit = std::optional<Hit>();
  hit->emplace();
  (*hit)->artifact = std::move(*artifact);
  (*hit)->origin = Origin::Disk;
  return hit;
}

bool DiskStore::remove(const Key& key) { return directory_.drop(ShardedName("entries", key.digest).c_str(), 0); }

Status DiskStore::put(const Key& key, const Artifact& artifact) {
  const std::string head = encode_entry_head(key, artifact);
  const std::uint64_t size = head.size() + artifact.bytes.size();
  if (size > kLargestEntry || (options_.size_bound != 0 && size > options_.size_bound)) {
    return failure(Code::Refused, "an artifact of " + std::to_string(artifact.bytes.size()) +
                                      " bytes is larger than the cache may become");
  }
  return publish(ShardedName("entries", key.digest), {head, artifact.bytes.view()});
}

Status DiskStore::publish(const ShardedName& name, std::initializer_list<std::string_view> parts) {
  bool due = false;
  Status published =
      directory_.publish(name.str(), parts, [&](std::int64_t bytes) { due = scan_is_due(journal_.add(bytes)); });
  if (published && due) (void)gc().ok();  // it is stored; that the rest could not be tidied is no failure of it
  return published;
}

bool DiskStore::scan_is_due(const std::optional<UsageJournal::Total>& total) const {
  if (!total || clock_.wall() - total->scanned_at > kScanEvery) return true;
  return options_.size_bound != 0 && total->bytes > options_.size_bound;
}

Result<Collected> DiskStore::gc() {
  {
    const MutexLock lock(mutex_);
    if (collecting_) return Collected{.elsewhere = true};
    collecting_ = true;
  }
  // Out of memory, a collection ends by an exception; the next one is collected all the same.
  struct Ended {
    DiskStore& store;
    ~Ended() {
      const MutexLock lock(store.mutex_);
      store.collecting_ = false;
    }
  };
  auto collected = [&] {
    const Ended ended{*this};
    return collect(directory_, journal_, options_.size_bound);
  }();
  if (collected && collected->removed_files != 0) {
    observer_.tell(Event::Kind::Evicted, "disk",
                   std::to_string(collected->removed_files) + " of " + std::to_string(collected->files) +
                       " files removed from " + root() + ", " + std::to_string(collected->removed_bytes) + " of " +
                       std::to_string(collected->bytes) + " bytes");
  }
  return collected;
}

Result<std::vector<Closure>> DiskStore::closures(const RequestKey& request, std::size_t limit) {
  std::vector<Closure> closures;
  if (limit == 0) return closures;
  const ShardedName name("hints", request.digest);
  for (std::size_t most = limit == 1 ? kFirstHint : kLargestHints;; most = kLargestHints) {
    auto file = directory_.read(name.c_str(), most);
    if (!file) return std::move(file).error();
    if (!*file) return closures;
    const auto bytes = span_of((*file)->bytes);
    const auto head = decode_hint_head(request, bytes);
    if (head && limit == 1 && most == kFirstHint && !head->slots.empty() && (*file)->size > bytes.size() &&
        head->slots.front().offset + head->slots.front().size > bytes.size()) {
      continue;  // a closure larger than the first read
    }
    bool damaged = !head || head->file_size() != (*file)->size;
    for (std::size_t i = 0; head && i < head->slots.size() && closures.size() < limit; ++i) {
      auto closure = Closure::decode(hint_in(head->slots[i], bytes));
      damaged |= !closure;
      if (closure) closures.push_back(std::move(*closure));
      if (limit == 1) break;  // the others were not read
    }
    if (damaged) drop(name.c_str(), (*file)->inode, request.hex(), "a hint file was damaged");
    return closures;
  }
}

Status DiskStore::add_closure(const RequestKey& request, const Closure& closure) {
  const ShardedName name("hints", request.digest);
  const std::string encoded = closure.encode();
  auto file = directory_.read(name.c_str(), kLargestHints);
  std::vector<std::string_view> hints;
  if (file && *file) hints = hints_in(request, (*file)->bytes);
  if (!hints.empty() && hints.front() == encoded) return {};
  std::erase(hints, encoded);
  hints.insert(hints.begin(), encoded);
  // Two writers at once: one closure is lost and costs a compile some day.
  return publish(name, {encode_hints(request, hints)});
}

bool DiskStore::writable() {
  if (options_.read_only) return false;
  const auto folder = directory_.folder();
  return folder && (*folder == nullptr || (*folder)->writable);
}

std::string DiskStore::describe() const { return "disk " + root(); }

Status DiskStore::check() {
  const auto folder = directory_.folder();
  if (!folder) return folder.error();
  return {};
}

}  // namespace kiln
