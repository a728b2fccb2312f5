// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_directory.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/error.hpp"
#include "base/files/owned_file.hpp"
#include "base/hash.hpp"
#include "base/process/system_info.hpp"
#include "cache/cache_owners.hpp"

namespace kiln {
namespace {

using namespace std::chrono_literals;

constexpr auto kNotedEvery = 1h;
// Readable by other users, as the files are: root fills the cache of an image and any user reads it. Parent directories
// are created private (`make_directories`).
constexpr mode_t kDirectoryMode = 0755;
constexpr std::string_view kTagText =
    "Signature: 8a477f597d28d172789f06886806bc55\n# This is a cache of kiln. It can be removed at any time.\n";

std::string hex16(std::uint64_t value) {
  char text[17];
  for (int i = 15; i >= 0; --i, value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return std::string(text, 16);
}

// Identifies the boot, host and PID namespace. A process ID is only valid within them, and several can share one cache.
std::string host_mark() {
  std::string identity;
  if (const auto boot = read_file("/proc/sys/kernel/random/boot_id"); boot && *boot) identity = (*boot)->view();
  char names[64];
  const ssize_t size = readlink("/proc/self/ns/pid", names, sizeof names);
  if (size > 0) identity.append(names, static_cast<std::size_t>(size));
  return hex16(xxh3(as_bytes(identity)));
}

bool made(int directory, const char* path) { return mkdirat(directory, path, kDirectoryMode) == 0 || errno == EEXIST; }

// Transient errors of a network file system, for a file that another host replaced or still has open. A retry succeeds.
bool passing(int error) { return error == ESTALE || error == EBUSY || error == EINTR; }

}  // namespace

ShardedName::ShardedName(std::string_view kind, const Digest& digest) {
  static constexpr char digits[] = "0123456789abcdef";
  char* out = text_;
  std::memcpy(out, kind.data(), kind.size());
  out += kind.size();
  *out++ = '/';
  *out++ = digits[digest.bytes[0] >> 4];
  *out++ = digits[digest.bytes[0] & 15];
  *out++ = '/';
  for (const std::uint8_t byte : digest.bytes) {
    *out++ = digits[byte >> 4];
    *out++ = digits[byte & 15];
  }
  *out = '\0';
}

CacheDirectory::CacheDirectory(Options options, const Clock& clock) : options_(std::move(options)), clock_(clock) {}

Result<CacheDirectory::OpenDirectoryPtr> CacheDirectory::open() {
  const MutexLock lock(mutex_);
  if (directory_ != nullptr) return directory_;
  if (Status above = check_above_cache(options_.root, options_.trusted_owners); !above) return std::move(above).error();
  const auto absent = [](const Error& error) { return error.code == Code::Unavailable; };
  auto root = open_trusted_directory(options_.root, options_.trusted_owners);
  if (!root && absent(root.error())) return OpenDirectoryPtr();
  if (!root) return std::move(root).error();
  const std::string path = join_path(options_.root, kVersion);
  auto version = open_trusted_directory(path, options_.trusted_owners);
  if (!version && absent(version.error())) return OpenDirectoryPtr();
  if (!version) return std::move(version).error();
  struct stat status;
  if (fstat(version->get(), &status) != 0) return io_error("cannot stat", path, errno);
  auto opened = std::make_shared<OpenDirectory>();
  opened->root = std::move(*root);
  opened->version = std::move(*version);
  // Only the owner writes: files of root in a user's cache would lock the user out.
  opened->writable = !options_.read_only && status.st_uid == geteuid();
  opened->owners = options_.trusted_owners;
  opened->owners.push_back(status.st_uid);  // this owner is trusted, or the open would have failed
  directory_ = std::move(opened);
  return directory_;
}

void CacheDirectory::forget(const OpenDirectoryPtr& directory) {
  const MutexLock lock(mutex_);
  if (directory_ == directory) directory_ = nullptr;
}

Status CacheDirectory::make() {
  if (Status created = make_directories(options_.root, kDirectoryMode); !created) return created;
  // The owner is checked before anything is written.
  const auto root = open_trusted_directory(options_.root, options_.trusted_owners);
  if (!root) return root.error();
  if (!made(root->get(), kVersion)) return io_error("cannot create", join_path(options_.root, kVersion), errno);
  const std::string path = join_path(options_.root, kVersion);
  const auto version = open_trusted_directory(path, options_.trusted_owners);
  if (!version) return version.error();
  if (!made(version->get(), "tmp")) return io_error("cannot create", path + "/tmp", errno);
  const Fd tag(openat(version->get(), kTag, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (tag) (void)write_all(tag.get(), kTagText, kTag).has_value();  // the tag is optional
  return {};
}

Result<CacheDirectory::OpenDirectoryPtr> CacheDirectory::open_for_write() {
  if (options_.read_only) return make_error(Code::Denied, options_.root + " is configured as read-only");
  for (int attempt = 0;; ++attempt) {
    auto found = open();
    if (!found) return found;
    if (*found != nullptr && !(*found)->writable) {
      return make_error(Code::Denied, options_.root + " is owned by another user and cannot be written");
    }
    if (*found != nullptr) return found;
    if (attempt == 2) return make_error(Code::Io, options_.root + " was removed right after it was created");
    if (Status status = make(); !status) return std::move(status).error();
  }
}

Status CacheDirectory::check_write() {
  if (options_.read_only) return make_error(Code::Denied, options_.root + " is configured as read-only");
  const auto found = open();
  if (!found) return found.error();
  if (*found != nullptr && !(*found)->writable) {
    return make_error(Code::Denied, options_.root + " is owned by another user and cannot be written");
  }
  std::string place = join_path(options_.root, kVersion);
  while (place.size() > 1 && !exists(place)) place = parent_path(place);
  std::string probe = join_path(place, ".kiln-check-XXXXXX");
  // Permissions alone do not decide it: file systems can be read-only, full or virtual.
  if (mkdtemp(probe.data()) == nullptr) return io_error("cannot create a directory in", place, errno);
  (void)rmdir(probe.c_str());
  return {};
}

void CacheDirectory::note_use(const OpenDirectory& directory, int fd, std::int64_t modified_ns) const {
  if (!directory.writable) return;
  const std::chrono::nanoseconds now = clock_.wall();
  const std::chrono::nanoseconds age = now - std::chrono::nanoseconds(modified_ns);
  // A time in the future, from a clock that was wrong once, would protect a file from eviction permanently.
  if (age < kNotedEvery && age > -kNotedEvery) return;
  if (is_network_filesystem(directory.version.get())) return;
  const timespec times[2] = {{0, UTIME_OMIT}, {now.count() / 1'000'000'000, now.count() % 1'000'000'000}};
  (void)futimens(fd, times);
}

Result<std::optional<CacheDirectory::File>> CacheDirectory::read(const char* name, std::size_t maximum) {
  for (int attempt = 0;; ++attempt) {
    const bool last = attempt == 1;
    const auto found = open();
    if (!found) return found.error();
    if (*found == nullptr) return std::optional<File>();
    const OpenDirectory& directory = **found;
    // Non-blocking, so that a FIFO at this path cannot hang the caller. kiln never creates links.
    const Fd fd(openat(directory.version.get(), name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW));
    struct stat status;
    if (!fd) {
      const int error = errno;
      if (error == ENOENT || error == ESTALE) {
        // The whole cache may have been removed and created again since it was opened.
        const bool replaced = error == ESTALE || fstat(directory.version.get(), &status) != 0 || status.st_nlink == 0;
        if (!replaced || last) return std::optional<File>();
        forget(*found);
        continue;
      }
      if (error == ENOTDIR) return std::optional<File>();
      if (error == ELOOP) return std::optional<File>(File{});  // a link is treated like an empty file
      if (passing(error) && !last) continue;
      return io_error("cannot open", name, error);
    }
    if (fstat(fd.get(), &status) != 0) return io_error("cannot stat", name, errno);
    File file{{}, static_cast<std::uint64_t>(status.st_size), status.st_ino};
    if (!S_ISREG(status.st_mode)) return std::optional<File>(File{{}, 0, status.st_ino});
    if (!is_owned(status, directory.owners)) {
      file.is_trusted = false;
      return std::optional<File>(std::move(file));
    }
    auto bytes = read_all(fd.get(), std::min(maximum, static_cast<std::size_t>(status.st_size)), name);
    if (!bytes && !last) continue;
    if (!bytes) return std::move(bytes).error();
    file.bytes = std::move(*bytes);
    note_use(directory, fd.get(), FileStamp::of(status).modified_ns);
    return std::optional<File>(std::move(file));
  }
}

std::string CacheDirectory::temporary_name() {
  const MutexLock lock(mutex_);
  // The process ID is read each time because a forked child is a different writer.
  if (writer_.empty()) writer_ = random_digits() + "-" + host_mark() + "-";
  return "tmp/" + writer_ + std::to_string(getpid()) + "-" + std::to_string(sequence_++);
}

bool CacheDirectory::is_writer_dead(std::string_view temporary) const {
  // nonce(16) - host(16) - pid - sequence
  static const std::string host = host_mark();
  if (temporary.size() < 35 || temporary.substr(17, 16) != host) return false;
  const std::string_view rest = temporary.substr(34);
  pid_t pid = 0;
  const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), pid);
  if (parsed.ec != std::errc() || pid <= 0) return false;
  return kill(pid, 0) != 0 && errno == ESRCH;
}

void CacheDirectory::remove_stale_once(const OpenDirectory& directory) {
  const pid_t self = getpid();
  if (swept_by_.exchange(self) == self) return;
  for (const std::string& name : list_directory(directory.version.get(), "tmp")) {
    if (is_writer_dead(name)) (void)unlinkat(directory.version.get(), ("tmp/" + name).c_str(), 0);
  }
}

Status CacheDirectory::publish_once(const OpenDirectory& opened, const std::string& name,
                                    std::initializer_list<std::string_view> parts,
                                    const std::function<void()>& written) {
  const int directory = opened.version.get();
  const std::string shard = name.substr(0, name.find_last_of('/'));
  if (shard != name && !made(directory, shard.c_str())) {
    const std::size_t slash = shard.find('/');
    if (slash == std::string::npos || !made(directory, shard.substr(0, slash).c_str()) ||
        !made(directory, shard.c_str())) {
      return io_error("cannot create", join_path(options_.root, shard), errno);
    }
  }
  const std::string temporary = temporary_name();
  if (Status created = create_file(directory, temporary, parts, Durability::Unsynced); !created) return created;
  try {
    written();
  } catch (...) {  // out of memory
    unlinkat(directory, temporary.c_str(), 0);
    throw;
  }
  return rename_file(directory, temporary, name);
}

Status CacheDirectory::publish(const std::string& name, std::initializer_list<std::string_view> parts,
                               const SizeDeltaCallback& grows) {
  std::int64_t size = 0;
  for (const std::string_view part : parts) size += static_cast<std::int64_t>(part.size());
  std::optional<std::int64_t> before;  // size of the file before the first attempt; -1 if there was none
  for (int attempt = 0;; ++attempt) {
    const auto found = open_for_write();
    if (!found) return found.error();
    remove_stale_once(**found);
    struct stat file;
    const auto exists = [&] { return fstatat((*found)->version.get(), name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0; };
    if (!before) before = exists() ? file.st_size : -1;
    bool counted = false;
    Status status = publish_once(**found, name, parts, [&] {
      grows(size);
      counted = true;
    });
    if (status && *before > 0) grows(-*before);
    if (status) return status;
    // Network file systems report a lost race in many ways (ESTALE, EBUSY, ENOENT), and a removed cache causes the same
    // errors. So every error is retried once, starting from the root. If the file exists after the second attempt,
    // another writer won the race or the rename succeeded despite the reported error. Both count as success.
    if (attempt == 1 && *before < 0 && exists()) return {};
    if (counted) grows(-size);
    if (attempt == 1) return status;
    forget(*found);
    (void)make().has_value();
  }
}

bool CacheDirectory::remove_corrupt(const char* name, std::uint64_t inode) {
  const auto found = open();
  if (!found || *found == nullptr || !(*found)->writable) return false;
  struct stat status;
  if (fstatat((*found)->version.get(), name, &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (inode != 0 && status.st_ino != inode) return false;  // another process replaced the corrupt file
  return unlinkat((*found)->version.get(), name, S_ISDIR(status.st_mode) ? AT_REMOVEDIR : 0) == 0;
}

}  // namespace kiln
