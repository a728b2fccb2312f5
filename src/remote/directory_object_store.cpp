// SPDX-License-Identifier: Apache-2.0
#include "remote/directory_object_store.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>

#include "base/error.hpp"
#include "remote/jitter.hpp"

namespace kiln {
namespace {

using namespace std::chrono_literals;

// Size of the first read of an object. Most objects are smaller, and only a file that really is larger gets more
// memory.
constexpr std::uint64_t kFirstRead = std::uint64_t{256} << 10;
constexpr std::string_view kTemporary = ".tmp-";
constexpr std::size_t kWriterDigits = 32;
// Longer than any write of an object takes and than host clocks differ.
constexpr auto kStaleTemporaryAge = 24h;

bool passing(int error) { return error == ESTALE || error == EBUSY || error == EINTR; }

Error object_store_failure(std::string_view what, const std::string& path, int error) {
  Error failed = io_error(what, path, error);
  if (error == EACCES || error == EPERM || error == EROFS) failed.code = Code::Denied;
  if (error == ENOENT || error == ENOTDIR || error == ESTALE) failed.code = Code::Unavailable;
  if (error == ELOOP) {
    failed =
        make_error(Code::Denied, std::string(what) + " " + path +
                                     ": a parent directory is a symbolic link, which kiln does not follow in a shared "
                                     "directory; remove the link");
  }
  return failed;
}

Error too_late(const std::string& root) { return make_error(Code::TimedOut, root + ": timed out"); }

// Reads an open object without querying its size, which would cost a second request to a metadata server. On failure
// sets `error` to the errno value.
std::optional<Bytes> read_body(int fd, std::uint64_t maximum, const Deadline& deadline, int& error) {
  std::uint64_t room = std::min(maximum + 1, kFirstRead);  // the extra byte detects a larger object
  std::shared_ptr<std::uint8_t[]> buffer = std::make_shared_for_overwrite<std::uint8_t[]>(room);
  std::uint64_t done = 0;
  while (done <= maximum) {
    if (deadline.remaining() <= 0ns) {
      error = ETIMEDOUT;
      return std::nullopt;
    }
    if (done == room) {
      room = std::min(maximum + 1, room * 4);
      auto larger = std::make_shared_for_overwrite<std::uint8_t[]>(room);
      std::memcpy(larger.get(), buffer.get(), done);
      buffer = std::move(larger);
    }
    const ssize_t got = ::read(fd, buffer.get() + done, room - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      error = errno;
      return std::nullopt;
    }
    if (got == 0) {
      const std::uint8_t* data = buffer.get();
      return Bytes(std::shared_ptr<const void>(std::move(buffer), data), data, done);
    }
    done += static_cast<std::uint64_t>(got);
  }
  error = EFBIG;
  return std::nullopt;
}

// `.tmp-<32 hexadecimal digits>-<process id>-<number>`, the format of temporary_name().
bool is_temporary_name(std::string_view name) {
  if (!name.starts_with(kTemporary)) return false;
  name.remove_prefix(kTemporary.size());
  const auto field = [&name](std::string_view digits) {
    const std::size_t length = std::min(name.find_first_not_of(digits), name.size());
    name.remove_prefix(length);
    return length;
  };
  const auto dash = [&name] {
    if (!name.starts_with('-')) return false;
    name.remove_prefix(1);
    return true;
  };
  constexpr std::string_view kDecimal = "0123456789";
  return field("0123456789abcdef") == kWriterDigits && dash() && field(kDecimal) > 0 && dash() && field(kDecimal) > 0 &&
         name.empty();
}

struct NoteMatch {
  int directory;  // descriptor of the shard directory
  const std::string& shard;
  const std::string& name;
  FileStamp stamp;
};

// Visits every regular file of a bucket that is reachable without a symbolic link. Returns false on timeout.
bool for_each_file(int root, ObjectStore::Bucket bucket, Resolution resolution, const Deadline& deadline,
                   const std::function<void(const NoteMatch&)>& visit) {
  const Fd directory = open_directory_beneath(root, to_string(bucket), resolution);
  if (!directory) return true;
  for (const std::string& shard : list_directory(directory.get(), ".")) {
    if (shard.size() != 2) continue;
    const Fd inside = open_directory_beneath(directory.get(), shard.c_str(), resolution);
    if (!inside) continue;
    for (const std::string& name : list_directory(inside.get(), ".")) {
      if (deadline.remaining() <= 0ns) return false;
      if (const auto stamp = stamp_in(inside.get(), name.c_str())) visit({inside.get(), shard, name, *stamp});
    }
  }
  return true;
}

}  // namespace

Result<DirectoryObjectStore::Directory> DirectoryObjectStore::directory() {
  const MutexLock lock(mutex_);
  if (directory_ != nullptr) return directory_;
  Fd fd(open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return object_store_failure("cannot open the shared directory", root_, errno);
  directory_ = std::make_shared<const Fd>(std::move(fd));
  return directory_;
}

void DirectoryObjectStore::forget(const Directory& directory) {
  const MutexLock lock(mutex_);
  if (directory_ == directory) directory_ = nullptr;
}

Result<std::optional<Bytes>> DirectoryObjectStore::read(Bucket bucket, const Digest& name, std::uint64_t maximum,
                                                        const Deadline& deadline) {
  const ShardedName path(to_string(bucket), name);
  const auto no_body = [&](const char* reason) {
    return make_error(Code::Corrupt, root_ + "/" + path.c_str() + " " + reason);
  };
  for (int attempt = 0;; ++attempt) {
    const bool last = attempt == 1;
    if (deadline.remaining() <= 0ns) return too_late(root_);
    const auto root = directory();
    if (!root) return root.error();
    // Non-blocking, so that a FIFO cannot hang the caller. No kiln writer creates links, so links are not followed in
    // any component of the path.
    const Fd fd = open_beneath((*root)->get(), path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY, resolution_);
    int error = fd ? 0 : errno;
    if (!fd && error == ENOENT) return std::optional<Bytes>();
    if (fd) {
      if (auto body = read_body(fd.get(), maximum, deadline, error)) return body;
    }
    switch (error) {
      case EFBIG: return no_body("is too long");
      case ETIMEDOUT: return too_late(root_);
      // A symbolic link, directory, socket or FIFO with a silent writer: another program created it, and it is not an
      // object.
      case ELOOP:
      case ENOTDIR:
      case EISDIR:
      case ENXIO:
      case EAGAIN: return no_body("is not a regular file");
      default: break;
    }
    // A network file system can return such an error for a file that another host has just replaced; one retry fixes
    // it.
    if (!passing(error) || last) return object_store_failure("cannot read", root_ + "/" + path.c_str(), error);
    if (error == ESTALE) forget(*root);
  }
}

std::string DirectoryObjectStore::temporary_name() {
  const MutexLock lock(mutex_);
  if (writer_.empty()) writer_ = random_hex_id();
  // getpid() is called each time because a forked child is another writer.
  return std::string(kTemporary) + writer_ + "-" + std::to_string(getpid()) + "-" + std::to_string(sequence_++);
}

Status DirectoryObjectStore::write_once(const Directory& root, const ShardedName& path,
                                        std::initializer_list<std::string_view> parts, std::optional<bool>& before) {
  struct stat status;
  if (fstat(root->get(), &status) != 0 || status.st_nlink == 0)
    return make_error(Code::Unavailable, root_ + " was removed");
  const std::string shard = parent_path(path.str());
  const std::string name = file_name(path.str());
  const Fd directory = make_directory_beneath(root->get(), shard.c_str(), status.st_mode & 07777, resolution_);
  if (!directory) return object_store_failure("cannot create", root_ + "/" + shard, errno);
  if (!before) before = stamp_in(directory.get(), name.c_str()).has_value();
  // The mode of the root decides who can read. Only the owner can write: objects are replaced by rename, never
  // modified.
  const mode_t mode = (status.st_mode & 0444) | 0600;
  Status published = publish_file(directory.get(), temporary_name(), name, parts, Durability::Unsynced, mode);
  if (published) return published;
  Error error = std::move(published).error();
  error.message = root_ + "/" + shard + ": " + error.message;
  return error;
}

bool DirectoryObjectStore::is_there(const Directory& root, const ShardedName& path) const {
  const Fd directory = open_directory_beneath(root->get(), parent_path(path.str()).c_str(), resolution_);
  return directory && stamp_in(directory.get(), file_name(path.str()).c_str());
}

Status DirectoryObjectStore::write(Bucket bucket, const Digest& name, std::initializer_list<std::string_view> parts,
                                   const Deadline& deadline) {
  const ShardedName path(to_string(bucket), name);
  std::optional<bool> before;  // whether the object existed before the first attempt
  for (int attempt = 0;; ++attempt) {
    if (deadline.remaining() <= 0ns) return too_late(root_);
    const auto root = directory();
    if (!root) return root.error();
    Status written = write_once(*root, path, parts, before);
    if (written) return written;
    // Network file systems report a lost race in many ways (ESTALE, EBUSY, ENOENT), and a directory that was removed
    // and created again looks the same. Therefore any error is retried once, starting at the root.
    forget(*root);
    if (attempt == 0) continue;
    // Another writer may have won, or the rename may have succeeded although an error was reported. The object then
    // exists, which is the requested result.
    if (before == false && is_there(*root, path)) return {};
    // The directory exists and can be read. That it rejects writes (disk full, owned by another user, read-only) is not
    // a failure of the object store.
    Error error = std::move(written).error();
    if (error.code == Code::Io) error.code = Code::Denied;
    return error;
  }
}

Status DirectoryObjectStore::remove(Bucket bucket, const Digest& name, const Deadline& deadline) {
  if (deadline.remaining() <= 0ns) return too_late(root_);
  const auto root = directory();
  if (!root) return root.error();
  const std::string path = ShardedName(to_string(bucket), name).str();
  const Fd inside = open_directory_beneath((*root)->get(), parent_path(path).c_str(), resolution_);
  if (inside && remove_file_in(inside.get(), file_name(path).c_str())) return {};
  const int error = errno;
  // A file that is not regular or that is behind a symbolic link is not an object, so there is nothing to remove.
  if (error == ENOENT || error == ENOTDIR || error == ELOOP || error == EINVAL) return {};
  if (error == ESTALE) forget(*root);
  return object_store_failure("cannot remove", root_ + "/" + path, error);
}

Result<std::vector<ObjectStore::ObjectInfo>> DirectoryObjectStore::list(Bucket bucket, const Deadline& deadline) {
  const auto root = directory();
  if (!root) return root.error();
  std::vector<ObjectInfo> all;
  const bool whole = for_each_file((*root)->get(), bucket, resolution_, deadline, [&](const NoteMatch& file) {
    const std::optional<Digest> digest = Digest::from_hex(file.name);
    if (!digest || !file.name.starts_with(file.shard)) return;
    all.push_back({*digest, file.stamp.size, std::chrono::nanoseconds(file.stamp.modified_ns)});
  });
  if (!whole) return too_late(root_);
  return all;
}

Status DirectoryObjectStore::remove_stale_uploads(const Deadline& deadline) {
  const auto root = directory();
  if (!root) return root.error();
  const Time now = system_clock().wall();
  for (const Bucket bucket : {Bucket::ActionCache, Bucket::Cas}) {
    const bool whole = for_each_file((*root)->get(), bucket, resolution_, deadline, [&](const NoteMatch& file) {
      const bool abandoned = is_temporary_name(file.name) && now - Time(file.stamp.modified_ns) > kStaleTemporaryAge;
      if (abandoned) (void)remove_file_in(file.directory, file.name.c_str());
    });
    if (!whole) return too_late(root_);
  }
  return {};
}

Status DirectoryObjectStore::probe(const Deadline& deadline) {
  if (deadline.remaining() <= 0ns) return too_late(root_);
  // Reopen by name: the probe must check the directory that is there now.
  const auto root = directory();
  if (root) forget(*root);
  const auto again = directory();
  return again ? Status() : Status(again.error());
}

}  // namespace kiln
