#include "store/cache_directory.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/error.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

using namespace std::chrono_literals;

constexpr auto kNotedEvery = 1h;
// Readable by others, as the files are: an image's cache is filled by root and used by anybody. Folders above the
// cache's own are made private (make_directories).
constexpr mode_t kFolderMode = 0755;
constexpr std::string_view kTagText =
    "Signature: 8a477f597d28d172789f06886806bc55\n# This is a cache of kiln. It can be removed at any time.\n";

std::string hex16(std::uint64_t value) {
  char text[17];
  for (int i = 15; i >= 0; --i, value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return std::string(text, 16);
}

// Process ids mean something within one boot of one host and one pid namespace only, and a cache may be seen by many.
std::string host_mark() {
  std::string identity;
  if (const auto boot = read_file("/proc/sys/kernel/random/boot_id"); boot && *boot) identity = (*boot)->view();
  char names[64];
  const ssize_t size = readlink("/proc/self/ns/pid", names, sizeof names);
  if (size > 0) identity.append(names, static_cast<std::size_t>(size));
  return hex16(xxh3(as_bytes(identity)));
}

bool made(int directory, const char* path) { return mkdirat(directory, path, kFolderMode) == 0 || errno == EEXIST; }

// What a network file system says of a file that another host replaced or still holds: gone after a second look.
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

Result<CacheDirectory::FolderPtr> CacheDirectory::folder() {
  const MutexLock lock(mutex_);
  if (folder_ != nullptr) return folder_;
  const auto absent = [](const Error& error) { return error.code == Code::Unavailable; };
  auto root = open_trusted_directory(options_.root, options_.trusted_owners);
  if (!root && absent(root.error())) return FolderPtr();
  if (!root) return std::move(root).error();
  const std::string path = join_path(options_.root, kVersion);
  auto version = open_trusted_directory(path, options_.trusted_owners);
  if (!version && absent(version.error())) return FolderPtr();
  if (!version) return std::move(version).error();
  struct stat status;
  if (fstat(version->get(), &status) != 0) return io_failure("cannot look at", path, errno);
  auto opened = std::make_shared<Folder>();
  opened->root = std::move(*root);
  opened->version = std::move(*version);
  // Only the owner writes: root's files in a user's cache would shut the user out of it.
  opened->writable = !options_.read_only && status.st_uid == geteuid();
  folder_ = std::move(opened);
  return folder_;
}

void CacheDirectory::forget(const FolderPtr& folder) {
  const MutexLock lock(mutex_);
  if (folder_ == folder) folder_ = nullptr;
}

Status CacheDirectory::make() {
  const std::size_t slash = options_.root.find_last_of('/');
  if (slash != std::string::npos && slash > 0) {
    if (Status parents = make_directories(options_.root.substr(0, slash)); !parents) return parents;
  }
  if (!made(AT_FDCWD, options_.root.c_str())) {
    const int error = errno;
    struct stat status;
    if (stat(options_.root.c_str(), &status) != 0) return io_failure("cannot create", options_.root, error);
  }
  // Looked at before anything is put into it.
  const auto root = open_trusted_directory(options_.root, options_.trusted_owners);
  if (!root) return root.error();
  if (!made(root->get(), kVersion)) return io_failure("cannot create", join_path(options_.root, kVersion), errno);
  const std::string path = join_path(options_.root, kVersion);
  const auto version = open_trusted_directory(path, options_.trusted_owners);
  if (!version) return version.error();
  if (!made(version->get(), "tmp")) return io_failure("cannot create", path + "/tmp", errno);
  const Fd tag(openat(version->get(), kTag, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (tag) (void)write_all(tag.get(), kTagText, kTag).ok();  // without it nothing breaks
  return {};
}

Result<CacheDirectory::FolderPtr> CacheDirectory::folder_to_write() {
  if (options_.read_only) return failure(Code::Refused, options_.root + " is configured to be read only");
  for (int attempt = 0;; ++attempt) {
    auto found = folder();
    if (!found) return found;
    if (*found != nullptr && !(*found)->writable) {
      return failure(Code::Refused, options_.root + " belongs to somebody else and is only read");
    }
    if (*found != nullptr) return found;
    if (attempt == 2) return failure(Code::Io, options_.root + " vanishes as soon as it is made");
    if (Status status = make(); !status) return std::move(status).error();
  }
}

void CacheDirectory::note_use(const Folder& folder, int fd, std::int64_t modified_ns) const {
  if (!folder.writable) return;
  const std::chrono::nanoseconds now = clock_.wall();
  const std::chrono::nanoseconds age = now - std::chrono::nanoseconds(modified_ns);
  // A time in the future, from a clock that was wrong once, would keep a file for ever.
  if (age < kNotedEvery && age > -kNotedEvery) return;
  if (on_network(folder.version.get())) return;
  const timespec times[2] = {{0, UTIME_OMIT}, {now.count() / 1'000'000'000, now.count() % 1'000'000'000}};
  (void)futimens(fd, times);
}

Result<std::optional<CacheDirectory::File>> CacheDirectory::read(const char* name, std::size_t most) {
  for (int attempt = 0;; ++attempt) {
    const bool last = attempt == 1;
    const auto found = folder();
    if (!found) return found.error();
    if (*found == nullptr) return std::optional<File>();
    const Folder& folder = **found;
    // Non-blocking, so that a FIFO under a file's name cannot hang the caller; a link is never ours.
    const Fd fd(openat(folder.version.get(), name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW));
    struct stat status;
    if (!fd) {
      const int error = errno;
      if (error == ENOENT || error == ESTALE) {
        // The whole cache may have been removed, and made again, since it was opened.
        const bool replaced = error == ESTALE || fstat(folder.version.get(), &status) != 0 || status.st_nlink == 0;
        if (!replaced || last) return std::optional<File>();
        forget(*found);
        continue;
      }
      if (error == ENOTDIR) return std::optional<File>();
      if (error == ELOOP) return std::optional<File>(File{});  // a link: as bad as an empty file
      if (passing(error) && !last) continue;
      return io_failure("cannot open", name, error);
    }
    if (fstat(fd.get(), &status) != 0) return io_failure("cannot look at", name, errno);
    File file{{}, static_cast<std::uint64_t>(status.st_size), status.st_ino};
    if (!S_ISREG(status.st_mode)) return std::optional<File>(File{{}, 0, status.st_ino});
    auto bytes = read_all(fd.get(), std::min(most, static_cast<std::size_t>(status.st_size)), name);
    if (!bytes && !last) continue;
    if (!bytes) return std::move(bytes).error();
    file.bytes = std::move(*bytes);
    note_use(folder, fd.get(), FileStamp::of(status).modified_ns);
    return std::optional<File>(std::move(file));
  }
}

std::string CacheDirectory::temporary_name() {
  const MutexLock lock(mutex_);
  // The process id is looked at each time: a forked child is another writer.
  if (writer_.empty()) {
    std::uint64_t nonce = 0;
    if (getrandom(&nonce, sizeof nonce, GRND_NONBLOCK) != sizeof nonce) {
      nonce = static_cast<std::uint64_t>(clock_.steady().count());
    }
    writer_ = hex16(nonce) + "-" + host_mark() + "-";
  }
  return "tmp/" + writer_ + std::to_string(getpid()) + "-" + std::to_string(sequence_++);
}

bool CacheDirectory::writer_is_gone(std::string_view temporary) const {
  // nonce(16) - host(16) - pid - sequence
  static const std::string host = host_mark();
  if (temporary.size() < 35 || temporary.substr(17, 16) != host) return false;
  const std::string_view rest = temporary.substr(34);
  pid_t pid = 0;
  const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), pid);
  if (parsed.ec != std::errc() || pid <= 0) return false;
  return kill(pid, 0) != 0 && errno == ESRCH;
}

void CacheDirectory::sweep_once(const Folder& folder) {
  const pid_t self = getpid();
  if (swept_by_.exchange(self) == self) return;
  for (const std::string& name : list_directory(folder.version.get(), "tmp")) {
    if (writer_is_gone(name)) (void)unlinkat(folder.version.get(), ("tmp/" + name).c_str(), 0);
  }
}

Status CacheDirectory::publish_once(const Folder& folder, const std::string& name,
                                    std::initializer_list<std::string_view> parts,
                                    const std::function<void()>& written) {
  const int directory = folder.version.get();
  const std::string shard = name.substr(0, name.find_last_of('/'));
  if (shard != name && !made(directory, shard.c_str())) {
    const std::size_t slash = shard.find('/');
    if (slash == std::string::npos || !made(directory, shard.substr(0, slash).c_str()) ||
        !made(directory, shard.c_str())) {
      return io_failure("cannot create", join_path(options_.root, shard), errno);
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
                               const Grows& grows) {
  std::int64_t size = 0;
  for (const std::string_view part : parts) size += static_cast<std::int64_t>(part.size());
  std::optional<std::int64_t> before;  // the size of what was there at first; nothing was: -1
  for (int attempt = 0;; ++attempt) {
    const auto found = folder_to_write();
    if (!found) return found.error();
    sweep_once(**found);
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
    // Network file systems report a lost race in many ways (ESTALE, EBUSY, ENOENT), and a cache that was removed under
    // us looks the same; so whatever went wrong is tried once more, from the root on. Somebody else may have won, or
    // the rename been done though it was said not to be: then it is there, which is all that was wanted.
    if (attempt == 1 && *before < 0 && exists()) return {};
    if (counted) grows(-size);
    if (attempt == 1) return status;
    forget(*found);
    (void)make().ok();
  }
}

bool CacheDirectory::drop(const char* name, std::uint64_t inode) {
  const auto found = folder();
  if (!found || *found == nullptr || !(*found)->writable) return false;
  struct stat status;
  if (fstatat((*found)->version.get(), name, &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (inode != 0 && status.st_ino != inode) return false;  // somebody healed it meanwhile
  return unlinkat((*found)->version.get(), name, S_ISDIR(status.st_mode) ? AT_REMOVEDIR : 0) == 0;
}

}  // namespace kiln
