#include "base/file_digests.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/lock_file.hpp"
#include "base/replace_file.hpp"

namespace kiln {
namespace {

// The memory file, docs/digest-memory.md: a header, then a power of two of slots, open addressing by the path's hash.
constexpr char kMagic[8] = {'K', 'I', 'L', 'N', 'D', 'I', 'G', '1'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kMostSlots = std::size_t{1} << 20;
constexpr std::size_t kReadQuestions = 8;  // after so many the table is mapped
constexpr auto kYoung = std::chrono::seconds(2);
constexpr auto kLook = std::chrono::seconds(1);  // how often a waiter looks whether he was forgotten
// Nothing that a compiler reads is larger, and hints of other hosts may name whatever lies below the working folder.
constexpr std::uint64_t kLargest = std::uint64_t{1} << 30;
// A compiler's library of 100 MB takes a tenth of a second, which every process of a cold host would spend: from this
// size on one of them does, and the others wait for what he learns, at most this long.
constexpr std::uint64_t kLarge = std::uint64_t{16} << 20;
constexpr auto kMostTurn = std::chrono::seconds(5);
constexpr auto kTurnNap = std::chrono::milliseconds(5);

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

// A file that turns out longer than it said is not read to an end that it may not have: it is being written to, or is
// none that lies on a disk (files of /proc have no size).
Result<Digest> digest_of(int fd, std::uint64_t size, const std::string& path) {
  Sha256 hash;
  std::uint64_t done = 0;
  std::vector<std::uint8_t> buffer(std::size_t{1} << 18);
  while (true) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_failure("cannot read", path, errno);
    if (got == 0) return hash.finish();
    done += static_cast<std::uint64_t>(got);
    if (done > size) return failure(Code::Io, path + " grows while it is read");
    hash.add({buffer.data(), static_cast<std::size_t>(got)});
  }
}

// The right to digest a large file, among the processes of this host. Where it cannot be had everyone digests.
class Turn {
 public:
  Turn(const std::string& path, const Clock& clock) {
    const Result<std::string> folder = host_local_directory();
    if (!folder) return;
    const Result<LockFile*> file = LockFile::open(*folder + "/digesting");
    if (!file) return;
    const Digest key = sha256(path);
    const auto end = clock.steady() + kMostTurn;
    while (!(lock_ = (*file)->hold(key))) {
      const auto look = (*file)->look(LockFile::byte_of(key));
      if (look.result == LockFile::Attempt::Result::Failed || clock.steady() > end) return;
      waited_ = true;
      clock.sleep(kTurnNap);
    }
  }

  /// Somebody else had it before: what is looked for may be known by now.
  bool waited() const { return waited_; }

 private:
  LockFile::Hold lock_;
  bool waited_ = false;
};

}  // namespace

struct FileDigests::Table {
  Fd file;
  std::size_t slots = 0;
  std::size_t questions = 0;
  const Slot* mapped = nullptr;

  Table() = default;
  ~Table() {
    if (mapped != nullptr) munmap(const_cast<std::uint8_t*>(start()), bytes());
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  std::size_t bytes() const { return sizeof(Head) + slots * sizeof(Slot); }
  const std::uint8_t* start() const { return reinterpret_cast<const std::uint8_t*>(mapped) - sizeof(Head); }

  // Null for a file that is not there or is not what it should be: then nothing is remembered.
  static std::unique_ptr<Table> open(const std::string& path) {
    auto table = std::make_unique<Table>();
    table->file = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    const int fd = table->file.get();
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return nullptr;
    if ((status.st_uid != geteuid() && status.st_uid != 0) || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
      return nullptr;
    }
    Head head{};
    if (pread(fd, &head, sizeof head, 0) != sizeof head) return nullptr;
    if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0 || head.version != kVersion) return nullptr;
    table->slots = head.slots;
    const bool good = head.slots <= kMostSlots && std::has_single_bit(head.slots) &&
                      static_cast<std::size_t>(status.st_size) == table->bytes();
    return good ? std::move(table) : nullptr;
  }

  // The file is replaced by rename and never truncated, so the mapping stays whole.
  bool map() {
    if (mapped != nullptr) return true;
    if (on_network(file.get())) return false;
    void* data = mmap(nullptr, bytes(), PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (data == MAP_FAILED) return false;
    mapped = reinterpret_cast<const Slot*>(static_cast<const std::uint8_t*>(data) + sizeof(Head));
    return true;
  }

  // What the table has under a path's hash. A process that asks for a compiler and nothing else reads two slots, which
  // costs a tenth of mapping the table and faulting its pages in (measured: 1 against 11 µs); one that asks for the
  // headers of CUB maps it.
  std::optional<Slot> find(std::uint64_t hash) {
    if (++questions > kReadQuestions && map()) {
      const Slot* slot = find_slot(mapped, slots, hash);
      return slot != nullptr && slot->path_hash == hash ? std::optional<Slot>(*slot) : std::nullopt;
    }
    Slot some[4];
    for (std::size_t at = hash & (slots - 1); at < slots; at += std::size(some)) {
      const std::size_t count = std::min(std::size(some), slots - at);
      const auto wanted = static_cast<ssize_t>(count * sizeof(Slot));
      if (pread(file.get(), some, count * sizeof(Slot), static_cast<off_t>(sizeof(Head) + at * sizeof(Slot))) !=
          wanted) {
        return std::nullopt;
      }
      for (std::size_t i = 0; i < count; ++i) {
        if (some[i].path_hash == hash) return some[i];
        if (some[i].path_hash == 0) return std::nullopt;
      }
    }
    return std::nullopt;  // a chain that runs round the end is not worth a second loop: the file is digested again
  }
};

FileDigests::FileDigests(std::string memory, const Clock& clock) : memory_(std::move(memory)), clock_(clock) {}
FileDigests::~FileDigests() = default;

FileDigests::Table* FileDigests::table(std::size_t index) {
  if (memory_.empty()) return nullptr;
  auto& opened = tables_.at(index);
  if (!opened) opened = Table::open(index == 0 ? memory_ : host_local_path() + "/digests");
  return opened->get();
}

std::optional<Digest> FileDigests::remembered(const std::string& path, const FileStamp& stamp) {
  if (const auto found = learnt_.find(path); found != learnt_.end()) {
    if (found->second.stamp == stamp) return found->second.digest;
    return std::nullopt;
  }
  const std::uint64_t hash = hash_of_path(path);
  for (std::size_t index = 0; index < tables_.size(); ++index) {
    Table* known = table(index);
    const std::optional<Slot> slot = known != nullptr ? known->find(hash) : std::nullopt;
    if (slot && slot->stamp == stamp && slot->checksum == slot->computed_checksum()) return slot->digest;
  }
  return std::nullopt;
}

// Of a path that is in `digesting_`: it goes from there when this does.
class FileDigests::Digesting {
 public:
  Digesting(FileDigests& digests, const std::string& path) : digests_(digests), path_(path) {}
  ~Digesting() {
    const MutexLock lock(digests_.mutex_);
    digests_.digesting_.erase(path_);
    digests_.no_longer_digesting_.notify_all();
  }
  Digesting(const Digesting&) = delete;
  Digesting& operator=(const Digesting&) = delete;

 private:
  FileDigests& digests_;
  const std::string& path_;
};

std::optional<FileDigests::Seen> FileDigests::look(const std::string& path) {
  std::optional<FileStamp> stamp;
  while (true) {
    stamp = stamp_of(path.c_str());
    if (!stamp || stamp->size > kLargest) return std::nullopt;
    const MutexLock lock(mutex_);
    if (const auto digest = remembered(path, *stamp)) return Seen{*stamp, *digest};
    if (digesting_.insert(path).second) break;
    // What the other comes by may be newer than what was just looked at, or too young to be remembered.
    while (digesting_.contains(path)) clock_.wait(no_longer_digesting_, mutex_, kLook);
  }
  // Also when memory runs out here: others wait for it.
  const Digesting digesting(*this, path);
  const bool large = stamp->size >= kLarge && !memory_.empty();
  std::optional<Turn> turn;
  if (large) turn.emplace(path, clock_);
  std::optional<Reading> reading;
  if (turn && turn->waited()) reading = learnt_elsewhere(path, *stamp);
  if (!reading) {
    reading = read(path);
    keep(path, reading);
    // Before the turn is over: this is what the others wait for.
    if (large) (void)save();
  }
  if (!reading) return std::nullopt;
  return reading->seen;
}

std::optional<FileDigests::Reading> FileDigests::learnt_elsewhere(const std::string& path, const FileStamp& stamp) {
  reload();
  const MutexLock lock(mutex_);
  const auto digest = remembered(path, stamp);
  if (!digest) return std::nullopt;
  return Reading{{stamp, *digest}, true};
}

void FileDigests::keep(const std::string& path, const std::optional<Reading>& reading) {
  if (!reading) return;
  const MutexLock lock(mutex_);
  ++digested_;
  if (reading->settled) {
    learnt_[path] = reading->seen;
    unsaved_ = true;
  } else {
    learnt_.erase(path);
  }
}

std::optional<FileDigests::Reading> FileDigests::read(const std::string& path) const {
  // Non-blocking: what was a file a moment ago may be a pipe by now.
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat before;
  struct stat after;
  if (!fd || fstat(fd.get(), &before) != 0 || !S_ISREG(before.st_mode)) return std::nullopt;
  const FileStamp stamp = FileStamp::of(before);
  if (stamp.size > kLargest) return std::nullopt;
  const Result<Digest> digest = digest_of(fd.get(), stamp.size, path);
  if (!digest || fstat(fd.get(), &after) != 0) return std::nullopt;
  const bool settled = stamp == FileStamp::of(after) && !stamp.younger_than(kYoung, clock_.wall());
  return Reading{{stamp, *digest}, settled};
}

Status FileDigests::save() {
  std::vector<std::pair<std::string, Seen>> learnt;
  {
    const MutexLock lock(mutex_);
    if (!unsaved_ || memory_.empty()) return {};
    unsaved_ = false;
    learnt.assign(learnt_.begin(), learnt_.end());
  }
  const std::string folder = memory_.substr(0, memory_.rfind('/'));
  const Fd place(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  Status saved = failure(Code::Unavailable, folder + " does not exist yet");  // the first entry of a cache makes it
  if (place && !on_network(place.get()) && access(folder.c_str(), W_OK) == 0) {
    saved = save_to(memory_, learnt);
  } else if (place || std::any_of(learnt.begin(), learnt.end(),
                                  [](const auto& file) { return file.second.stamp.size >= kLarge; })) {
    // A host that only ever reads what others compiled has no such folder, and its compiler is large all the same.
    const Result<std::string> local = host_local_directory();
    saved = local ? save_to(*local + "/digests", learnt) : Status(local.error());
  }
  if (!saved) {
    const MutexLock lock(mutex_);
    unsaved_ = true;
  }
  return saved;
}

Status FileDigests::save_to(const std::string& memory, const std::vector<std::pair<std::string, Seen>>& learnt) {
  // Another process may have saved since: start from what is there now. Whoever renames last wins, and what the other
  // had learnt is digested again some day.
  std::unique_ptr<Table> old = Table::open(memory);
  if (old != nullptr && !old->map()) old = nullptr;
  std::size_t used = learnt.size();
  for (std::size_t i = 0; old != nullptr && i < old->slots; ++i) used += old->mapped[i].path_hash != 0;
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
  for (std::size_t i = 0; keep_old && old != nullptr && i < old->slots; ++i) {
    if (old->mapped[i].path_hash != 0) add(old->mapped[i]);
  }
  for (const auto& [path, seen] : learnt) {
    Slot slot{hash_of_path(path), seen.stamp, seen.digest, 0};
    slot.checksum = slot.computed_checksum();
    add(slot);
  }
  return replace_file(memory, bytes, Durability::Unsynced);
}

void FileDigests::reload() {
  const MutexLock lock(mutex_);
  for (auto& table : tables_) table.reset();
}

std::size_t FileDigests::digested() const {
  const MutexLock lock(mutex_);
  return digested_;
}

}  // namespace kiln
