#include "base/file_digests.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/error.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

// The memory file, docs/digest-memory.md: a header, then a power of two of slots, open addressing by the path's hash.
constexpr char kMagic[8] = {'K', 'I', 'L', 'N', 'D', 'I', 'G', '1'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kMostSlots = std::size_t{1} << 20;
constexpr auto kYoung = std::chrono::seconds(2);

struct Head {
  char magic[8];
  std::uint32_t version;
  std::uint32_t slots;
};

struct Slot {
  std::uint64_t path_hash;  // of the path: 0 marks an empty slot
  FileStamp stamp;
  Digest digest;
  std::uint64_t checksum;  // of all the above

  std::uint64_t computed_checksum() const {
    return xxh3({reinterpret_cast<const std::uint8_t*>(this), offsetof(Slot, checksum)});
  }
};
static_assert(sizeof(Head) == 16 && sizeof(Slot) == 88);

std::uint64_t hash_of_path(std::string_view path) {
  const std::uint64_t hash = xxh3(as_bytes(path));
  return hash == 0 ? 1 : hash;
}

// Where a path's slot is, or where it would go; null in a full table.
template <class S>
S* find_slot(S* slots, std::size_t count, std::uint64_t hash) {
  for (std::size_t i = 0, at = hash & (count - 1); i < count; ++i, at = (at + 1) & (count - 1)) {
    if (slots[at].path_hash == hash || slots[at].path_hash == 0) return &slots[at];
  }
  return nullptr;
}

Result<Digest> digest_of(int fd, const std::string& path) {
  Sha256 hash;
  std::vector<std::uint8_t> buffer(std::size_t{1} << 18);
  while (true) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_failure("cannot read", path, errno);
    if (got == 0) return hash.finish();
    hash.add({buffer.data(), static_cast<std::size_t>(got)});
  }
}

}  // namespace

struct FileDigests::Table {
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;

  Table(const std::uint8_t* mapped, std::size_t bytes) : data(mapped), size(bytes) {}
  ~Table() { munmap(const_cast<std::uint8_t*>(data), size); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  std::size_t slots() const { return reinterpret_cast<const Head*>(data)->slots; }
  const Slot* begin() const { return reinterpret_cast<const Slot*>(data + sizeof(Head)); }

  // Null for a file that is not there or is not what it should be: then nothing is remembered.
  static std::shared_ptr<const Table> open(const std::string& path) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status;
    if (!fd || fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return nullptr;
    if ((status.st_uid != geteuid() && status.st_uid != 0) || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
      return nullptr;
    const auto size = static_cast<std::size_t>(status.st_size);
    if (size < sizeof(Head)) return nullptr;
    // Mapped, not read: a lookup touches a few pages of a table that may have thousands of slots. The file is replaced
    // by rename and never truncated, so the mapping stays whole.
    void* mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (mapped == MAP_FAILED) return nullptr;
    auto table = std::make_shared<const Table>(static_cast<const std::uint8_t*>(mapped), size);
    const Head* head = reinterpret_cast<const Head*>(mapped);
    const bool good = std::memcmp(head->magic, kMagic, sizeof kMagic) == 0 && head->version == kVersion &&
                      head->slots <= kMostSlots && std::has_single_bit(head->slots) &&
                      size == sizeof(Head) + head->slots * sizeof(Slot);
    return good ? table : nullptr;
  }
};

FileDigests::FileDigests(std::string memory, const Clock& clock) : memory_(std::move(memory)), clock_(clock) {}
FileDigests::~FileDigests() = default;

std::optional<Digest> FileDigests::remembered(std::string_view path, const FileStamp& stamp) {
  if (const auto found = learnt_.find(std::string(path)); found != learnt_.end()) {
    if (found->second.stamp == stamp) return found->second.digest;
    return std::nullopt;
  }
  if (!opened_) {
    opened_ = true;
    if (!memory_.empty()) table_ = Table::open(memory_);
  }
  if (table_ == nullptr) return std::nullopt;
  const std::uint64_t hash = hash_of_path(path);
  const Slot* slot = find_slot(table_->begin(), table_->slots(), hash);
  if (slot == nullptr || slot->path_hash != hash || !(slot->stamp == stamp)) return std::nullopt;
  if (slot->checksum != slot->computed_checksum()) return std::nullopt;
  return slot->digest;
}

std::optional<FileDigests::Seen> FileDigests::look(const std::string& path) {
  const std::optional<FileStamp> stamp = stamp_of(path.c_str());
  if (!stamp) return std::nullopt;
  {
    const MutexLock lock(mutex_);
    if (const auto digest = remembered(path, *stamp)) return Seen{*stamp, *digest};
  }
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat before;
  struct stat after;
  if (!fd || fstat(fd.get(), &before) != 0 || !S_ISREG(before.st_mode)) return std::nullopt;
  const Result<Digest> digest = digest_of(fd.get(), path);
  if (!digest || fstat(fd.get(), &after) != 0) return std::nullopt;
  const Seen seen{FileStamp::of(before), *digest};
  const bool settled = seen.stamp == FileStamp::of(after) && !seen.stamp.younger_than(kYoung, clock_.wall());
  const MutexLock lock(mutex_);
  ++digested_;
  if (settled) {
    learnt_[path] = seen;
    unsaved_ = true;
  } else {
    learnt_.erase(path);
  }
  return seen;
}

Status FileDigests::save() {
  std::vector<std::pair<std::string, Seen>> learnt;
  {
    const MutexLock lock(mutex_);
    if (!unsaved_ || memory_.empty()) return {};
    unsaved_ = false;
    learnt.assign(learnt_.begin(), learnt_.end());
  }
  // Another process may have saved since: start from what is there now. Whoever renames last wins, and what the other
  // had learnt is digested again some day.
  const std::shared_ptr<const Table> old = Table::open(memory_);
  std::size_t used = learnt.size();
  for (std::size_t i = 0; old != nullptr && i < old->slots(); ++i) used += old->begin()[i].path_hash != 0;
  std::size_t count = std::bit_ceil(std::max<std::size_t>(64, 2 * used));
  const bool keep_old = count <= kMostSlots;  // a table that grew without bound starts again
  if (!keep_old) count = std::min(kMostSlots, std::bit_ceil(2 * learnt.size()));

  std::string bytes(sizeof(Head) + count * sizeof(Slot), '\0');
  Head head{};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  head.version = kVersion;
  head.slots = static_cast<std::uint32_t>(count);
  std::memcpy(bytes.data(), &head, sizeof head);
  Slot* slots = reinterpret_cast<Slot*>(bytes.data() + sizeof(Head));
  const auto add = [&](const Slot& from) {
    if (Slot* slot = find_slot(slots, count, from.path_hash)) *slot = from;
  };
  for (std::size_t i = 0; keep_old && old != nullptr && i < old->slots(); ++i) {
    if (old->begin()[i].path_hash != 0) add(old->begin()[i]);
  }
  for (const auto& [path, seen] : learnt) {
    Slot slot{hash_of_path(path), seen.stamp, seen.digest, 0};
    slot.checksum = slot.computed_checksum();
    add(slot);
  }

  static std::atomic<unsigned> sequence{0};
  const std::string temporary = memory_ + ".tmp-" + std::to_string(getpid()) + "-" + std::to_string(sequence++);
  Status saved = publish_file(AT_FDCWD, temporary, memory_, {bytes}, Durability::Unsynced);
  if (!saved) {
    // Its folder may not exist yet: the first entry of a cache makes it.
    const MutexLock lock(mutex_);
    unsaved_ = true;
  }
  return saved;
}

std::size_t FileDigests::digested() const {
  const MutexLock lock(mutex_);
  return digested_;
}

}  // namespace kiln
