// SPDX-License-Identifier: Apache-2.0
#include "worker/pch_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/files/lock_file.hpp"
#include "base/files/owned_file.hpp"
#include "base/process/system_info.hpp"
#include "worker/nameless_pch_cache.hpp"

namespace kiln {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr std::string_view kLarge = ".pch";
constexpr std::string_view kSmall = ".kpch";
constexpr std::string_view kTemporary = ".tmp";
constexpr std::string_view kAsked = ".asked";
constexpr std::string_view kVerdict = ".kpcv";
// A unit with all of CUB has about 700 files and as many failed lookups: less than 1 MB.
constexpr off_t kMaxSmallBytes = off_t{16} << 20;
constexpr off_t kMaxVerdictBytes = 8192;
constexpr nanoseconds kAskedFor = 30 * 24h;
constexpr std::size_t kMaxProfileEntries = 4096;

// A file in the cache directory, parsed from its name. Files with other names are not kiln's.
struct PchFile {
  enum class Kind : unsigned char { Large, Small, Temporary, Asked };
  std::string name;
  Digest key;
  Kind kind = Kind::Large;
  std::uint64_t bytes = 0;
  nanoseconds used{0};
};

std::string name_of(const Digest& key, std::string_view suffix) { return key.hex().append(suffix); }

std::optional<PchFile> parse_name(const std::string& name) {
  constexpr std::size_t kHex = 2 * sizeof(Digest::bytes);
  if (name.size() <= kHex) return std::nullopt;
  const auto key = Digest::from_hex(std::string_view(name).substr(0, kHex));
  const std::string_view suffix = std::string_view(name).substr(kHex);
  if (!key) return std::nullopt;
  PchFile file{name, *key};
  if (suffix == kLarge) {
    file.kind = PchFile::Kind::Large;
  } else if (suffix == kSmall) {
    file.kind = PchFile::Kind::Small;
  } else if (suffix == kAsked || suffix == kVerdict) {
    file.kind = PchFile::Kind::Asked;
  } else if (suffix.front() == '.' && suffix.ends_with(kTemporary)) {
    file.kind = PchFile::Kind::Temporary;
  } else {
    return std::nullopt;
  }
  return file;
}

std::vector<PchFile> files_in(int directory) {
  const nanoseconds now = system_clock().wall();
  std::vector<PchFile> files;
  for (const std::string& name : list_directory(directory, ".")) {
    auto file = parse_name(name);
    struct stat status;
    if (!file || fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || S_ISDIR(status.st_mode))
      continue;
    const FileStamp stamp = FileStamp::of(status);
    file->bytes = stamp.size;
    // A time in the future, from a clock that was wrong, would keep a file permanently.
    if (nanoseconds(stamp.modified_ns) < now + 1h) file->used = nanoseconds(stamp.modified_ns);
    files.push_back(std::move(*file));
  }
  return files;
}

// Opens the directory. Network file systems are rejected: another host could see the files, and a file can shrink while
// a compiler has it mapped.
Result<Fd> open_cache_directory(const std::string& path) {
  Result<Fd> directory = open_trusted_directory(path);
  if (directory && is_network_filesystem(directory->get())) {
    return make_error(Code::Denied,
                      path + " is on a network file system, but precompiled headers must be stored locally");
  }
  return directory;
}

Result<Fd> make_cache_directory(const std::string& path) {
  Result<Fd> directory = open_cache_directory(path);
  if (directory || directory.error().code != Code::Unavailable) return directory;
  if (Status made = make_directories(path); !made) return std::move(made).error();
  return open_cache_directory(path);
}

Result<LockFile*> locks_of(const std::string& directory) { return LockFile::open(join_path(directory, "locks")); }

std::string host_or_this(const std::string& host) { return host.empty() ? host_identity() : host; }

bool is_there(int directory, const std::string& name) {
  return faccessat(directory, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

// Removes the small file first: without it the large one is not found. With the small one alone, a lookup would search
// for the large one.
// Returns false if it did not exist.
bool remove_pair(int directory, const Digest& key) {
  const bool existed = unlinkat(directory, name_of(key, kSmall).c_str(), 0) == 0 || errno != ENOENT;
  (void)unlinkat(directory, name_of(key, kLarge).c_str(), 0);
  return existed;
}

// Removes a corrupt entry, unless a process is creating it or has replaced it since `small` was opened; returns false
// then. The inode number of an open file is not reused.
bool drop(const std::string& path, int directory, const Digest& key, const struct stat& small) {
  const Result<LockFile*> locks = locks_of(path);
  if (!locks) return true;
  const LockFile::ScopedLock hold = (*locks)->try_lock_scoped(key);
  struct stat now;
  if (!hold || fstatat(directory, name_of(key, kSmall).c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0) return false;
  return now.st_ino == small.st_ino && now.st_dev == small.st_dev && remove_pair(directory, key);
}

Fd open_file(int directory, const std::string& name) {
  return Fd(openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
}

Result<Pch> read_small(int fd, const struct stat& status, const Digest& key, const std::string& host) {
  if (!S_ISREG(status.st_mode) || status.st_size > kMaxSmallBytes) {
    return make_error(Code::Corrupt, "invalid metadata file of a precompiled header");
  }
  if (!is_owned(status)) return make_error(Code::Corrupt, "another user owns a precompiled header or can write to it");
  const Result<Bytes> bytes = read_all(fd, static_cast<std::size_t>(status.st_size), "a precompiled header");
  if (!bytes) return bytes.error();
  return decode_pch(bytes->view(), key, host);
}

bool has_size(int directory, const std::string& name, std::uint64_t size) {
  struct stat status;
  return fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
         is_owned(status) && static_cast<std::uint64_t>(status.st_size) == size;
}

// Restricts access. The compiler creates the file with the umask's mode, which can allow a group to write to it.
bool make_private(int directory, const std::string& name) {
  const Fd file = open_file(directory, name);
  return file && fchmod(file.get(), 0600) == 0;
}

// Sets the time from the system clock. The clock of file systems lags some milliseconds behind, which would affect the
// eviction order.
void note_use(int directory, const Digest& key) {
  const nanoseconds now = system_clock().wall();
  const timespec time{now.count() / 1'000'000'000, now.count() % 1'000'000'000};
  const timespec times[2] = {time, time};
  (void)utimensat(directory, name_of(key, kSmall).c_str(), times, AT_SYMLINK_NOFOLLOW);
}

// Removes old request markers and check results. They are small, but an unlimited number of new keys would fill the
// directory.
void remove_old_request_markers(int directory, std::vector<PchFile> asked) {
  std::sort(asked.begin(), asked.end(), [](const PchFile& a, const PchFile& b) { return a.used > b.used; });
  const nanoseconds now = system_clock().wall();
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (i >= kMaxProfileEntries || now - asked[i].used > kAskedFor) (void)unlinkat(directory, asked[i].name.c_str(), 0);
  }
}

// Removes the files of processes that died before publishing or between publishing the two files.
void sweep(int directory, LockFile& locks) {
  std::map<Digest, int> halves;
  std::vector<PchFile> asked;
  for (PchFile& file : files_in(directory)) {
    switch (file.kind) {
      case PchFile::Kind::Large:
      case PchFile::Kind::Small: ++halves[file.key]; break;
      case PchFile::Kind::Temporary:
        if (const LockFile::ScopedLock hold = locks.try_lock_scoped(file.key))
          (void)unlinkat(directory, file.name.c_str(), 0);
        break;
      case PchFile::Kind::Asked: asked.push_back(std::move(file)); break;
    }
  }
  for (const auto& [key, count] : halves) {
    if (count == 2) continue;
    const LockFile::ScopedLock hold = locks.try_lock_scoped(key);
    // Checks again under the lock: the other file may have been published after the listing.
    const bool whole = is_there(directory, name_of(key, kLarge)) && is_there(directory, name_of(key, kSmall));
    if (hold && !whole) (void)remove_pair(directory, key);
  }
  remove_old_request_markers(directory, std::move(asked));
}

// Evicts entries until the total size is within `bound`. It skips locked entries, including the one that the caller has
// just published. Two processes that evict at the same time can remove one entry too many, which costs creating it
// again. Each file that is being created counts as at least `creation` bytes. Returns whether the rest is in `bound`.
bool make_room(int directory, LockFile& locks, std::uint64_t bound, std::uint64_t creation = 0) {
  struct Pair {
    std::uint64_t bytes = 0;
    nanoseconds used{0};  // stays 0 if there is no small file, because the large file is then unusable
  };
  std::map<Digest, Pair> pairs;
  std::map<Digest, std::uint64_t> created;
  std::uint64_t total = 0;
  for (const PchFile& file : files_in(directory)) {
    (file.kind == PchFile::Kind::Temporary ? created[file.key] : total) += file.bytes;
    if (file.kind != PchFile::Kind::Large && file.kind != PchFile::Kind::Small) continue;
    Pair& pair = pairs[file.key];
    pair.bytes += file.bytes;
    if (file.kind == PchFile::Kind::Small) pair.used = file.used;
  }
  for (const auto& [key, bytes] : created) total += std::max(bytes, creation);
  std::vector<std::pair<Digest, Pair>> oldest_first(pairs.begin(), pairs.end());
  std::stable_sort(oldest_first.begin(), oldest_first.end(),
                   [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
  for (const auto& [key, pair] : oldest_first) {
    if (total <= bound) return true;
    const LockFile::ScopedLock hold = locks.try_lock_scoped(key);
    if (!hold) continue;
    remove_pair(directory, key);
    total -= pair.bytes;
  }
  return total <= bound;
}

}  // namespace

// A writer of a file with a name. Not thread-safe.
class PchCache::NamedWriter final : public Writer {
 public:
  NamedWriter(const Options& options, const Digest& key, LockFile& locks, LockFile::ScopedLock hold, std::string path)
      : Writer(key, std::move(path), nullptr), options_(options), locks_(locks), hold_(std::move(hold)) {}
  NamedWriter(NamedWriter&&) = delete;
  ~NamedWriter() override {
    // A forked child has a copy of this object but not the lock. The file belongs to the parent.
    if (getpid() != process_) return;
    (void)unlink(path_.c_str());  // after publishing, no file has this name
    (void)unlink(reservation_.c_str());
  }
  bool reserve() override;
  Status publish(const Pch& pch) override;
  Status publish(const PchVerdict& verdict) override;

 private:
  const Options& options_;
  LockFile& locks_;
  const LockFile::ScopedLock hold_;  // lock on the key
  const std::string reservation_ = path_ + std::string(kTemporary);
};

std::optional<Pch> PchCache::find(const Digest& key, std::string* corruption) {
  const Result<Fd> directory = open_cache_directory(options_.directory);
  if (!directory) return std::nullopt;
  const Fd small = open_file(directory->get(), name_of(key, kSmall));
  struct stat status;
  if (!small || fstat(small.get(), &status) != 0) return std::nullopt;
  Result<Pch> pch = read_small(small.get(), status, key, host_or_this(options_.host));
  const std::string large = name_of(key, kLarge);
  if (!pch || !has_size(directory->get(), large, pch->size)) {
    if (drop(options_.directory, directory->get(), key, status) && corruption != nullptr)
      *corruption =
          pch ? large + " is missing, has another size, or another user can write to it" : pch.error().message;
    return std::nullopt;
  }
  note_use(directory->get(), key);
  pch->path = join_path(options_.directory, large);
  return std::move(*pch);
}

std::optional<PchVerdict> PchCache::verdict(const Digest& key) {
  const Result<Fd> directory = open_cache_directory(options_.directory);
  if (!directory) return std::nullopt;
  const Fd file = open_file(directory->get(), name_of(key, kVerdict));
  struct stat status;
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > kMaxVerdictBytes ||
      !is_owned(status)) {
    return std::nullopt;
  }
  const auto bytes = read_all(file.get(), static_cast<std::size_t>(status.st_size), "a check result");
  if (!bytes) return std::nullopt;
  auto verdict = decode_verdict(bytes->view(), key, host_or_this(options_.host));
  if (!verdict || !is_current(*verdict, system_clock().wall())) return std::nullopt;
  return std::move(*verdict);
}

bool PchCache::requested_before(const Digest& key) {
  const Result<Fd> directory = make_cache_directory(options_.directory);
  if (!directory) return false;
  const Fd mark(openat(directory->get(), name_of(key, kAsked).c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  return !mark && errno == EEXIST;
}

std::unique_ptr<PchCache::Writer> PchCache::try_begin_write(const Digest& key) {
  const bool is_in_memory = options_.storage == Options::Storage::Memory;
  if (is_in_memory && available_memory() / kFreeMemoryParts < kMinPchMemory) return nullptr;
  return lock_key(key);
}

Status PchCache::publish_verdict(const Digest& key, const PchVerdict& verdict) {
  const auto writer = lock_key(key);
  if (writer == nullptr) return make_error(Code::Unavailable, "cannot store a check result in " + options_.directory);
  return writer->publish(verdict);
}

std::unique_ptr<PchCache::Writer> PchCache::lock_key(const Digest& key) {
  const Result<Fd> directory = make_cache_directory(options_.directory);
  if (!directory) return nullptr;
  const Result<LockFile*> locks = locks_of(options_.directory);
  if (!locks) return nullptr;
  const pid_t self = getpid();
  if (swept_by_.exchange(self) != self) sweep(directory->get(), **locks);
  LockFile::ScopedLock hold = (*locks)->try_lock_scoped(key);
  if (!hold) return nullptr;
  std::string suffix = "." + std::to_string(self) + "-" + std::to_string(system_clock().steady().count());
  suffix += kTemporary;
  std::string path = join_path(options_.directory, name_of(key, suffix));
  return std::make_unique<NamedWriter>(options_, key, **locks, std::move(hold), std::move(path));
}

// An empty file of its own, because NVRTC cannot replace one: shows other processes that a header is being created. If
// two exceed the limit, both can be refused.
bool PchCache::NamedWriter::reserve() {
  if (options_.storage != Options::Storage::Memory) return true;
  const Result<Fd> directory = open_cache_directory(options_.directory);
  if (!directory) return false;
  sweep(directory->get(), locks_);  // a dead process creates none
  const Fd file(
      openat(directory->get(), file_name(reservation_).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  return file && make_room(directory->get(), locks_, options_.max_bytes, kLargestPch);
}

Status PchCache::NamedWriter::publish(const Pch& pch) {
  if (getpid() != process_) return make_error(Code::Denied, "another process is creating this precompiled header");
  const Result<Fd> directory = open_cache_directory(options_.directory);
  if (!directory) return directory.error();
  const std::string temporary = file_name(path_);
  if (!make_private(directory->get(), temporary) || !has_size(directory->get(), temporary, pch.size)) {
    return make_error(Code::Corrupt, path_ + " is missing or is not " + std::to_string(pch.size) + " bytes long");
  }
  if (Status fits = check_fits(pch, options_); !fits) return fits;
  // Removes the old entry first, so that a small file is never next to the large file of another entry.
  remove_pair(directory->get(), key_);
  if (renameat(directory->get(), temporary.c_str(), directory->get(), name_of(key_, kLarge).c_str()) != 0) {
    return io_error("cannot publish", path_, errno);
  }
  // Not synced: the checksum detects a file that a machine crash left incomplete.
  const std::string small = encode_pch(key_, host_or_this(options_.host), pch);
  Status published =
      publish_file(directory->get(), temporary, name_of(key_, kSmall), {small}, Durability::Unsynced, 0600);
  if (!published) {
    remove_pair(directory->get(), key_);
    return published;
  }
  note_use(directory->get(), key_);
  (void)make_room(directory->get(), locks_, options_.max_bytes);
  return {};
}

Status PchCache::NamedWriter::publish(const PchVerdict& verdict) {
  if (getpid() != process_) return make_error(Code::Denied, "another process is checking this library");
  const Result<Fd> directory = open_cache_directory(options_.directory);
  if (!directory) return directory.error();
  (void)unlink(path_.c_str());  // the precompiled header that the check created
  const std::string bytes = encode_verdict(key_, host_or_this(options_.host), verdict);
  return publish_file(directory->get(), file_name(path_), name_of(key_, kVerdict), {bytes}, Durability::Unsynced, 0600);
}

bool PchCache::remove(const Digest& key) {
  const Result<Fd> directory = open_cache_directory(options_.directory);
  if (!directory) return true;
  const Result<LockFile*> locks = locks_of(options_.directory);
  if (!locks) return true;
  const LockFile::ScopedLock hold = (*locks)->try_lock_scoped(key);
  return hold && remove_pair(directory->get(), key);
}

PchCache::Usage PchCache::usage() const {
  Usage usage;
  const Result<Fd> directory = open_cache_directory(options_.directory);
  if (!directory) return usage;
  for (const PchFile& file : files_in(directory->get())) {
    if (file.kind == PchFile::Kind::Asked) continue;
    ++usage.files;
    usage.bytes += file.bytes;
  }
  return usage;
}

void PchCache::clear() {
  const Result<Fd> directory = open_cache_directory(options_.directory);
  if (!directory) return;
  const Result<LockFile*> locks = locks_of(options_.directory);
  if (!locks) return;
  // Keeps the lock file: processes that create entries have it open, and a new file would break mutual exclusion.
  std::vector<PchFile> files = files_in(directory->get());
  std::stable_partition(files.begin(), files.end(),
                        [](const PchFile& file) { return file.kind == PchFile::Kind::Small; });
  for (const PchFile& file : files) {
    if (const LockFile::ScopedLock hold = (*locks)->try_lock_scoped(file.key))
      (void)unlinkat(directory->get(), file.name.c_str(), 0);
  }
}

}  // namespace kiln
