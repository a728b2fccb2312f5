#include "remote/directory_depot.hpp"

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
#include "store/cache_directory.hpp"

namespace kiln {
namespace {

using namespace std::chrono_literals;

// The first read of a body: most are smaller, and a file that claims to be large must be so to get more.
constexpr std::uint64_t kFirstRead = std::uint64_t{256} << 10;
constexpr std::string_view kTemporary = ".tmp-";
// Nobody writes one body for so long, and no host's clock is so wrong.
constexpr auto kAbandoned = 24h;

bool passing(int error) { return error == ESTALE || error == EBUSY || error == EINTR; }

Error depot_failure(std::string_view what, const std::string& path, int error) {
  Error failed = io_failure(what, path, error);
  if (error == EACCES || error == EPERM || error == EROFS) failed.code = Code::Refused;
  if (error == ENOENT || error == ENOTDIR || error == ESTALE) failed.code = Code::Unavailable;
  return failed;
}

Error too_late(const std::string& root) { return failure(Code::TimedOut, root + " took longer than it may"); }

// The whole of an open body without asking for its size, which would be a second question to a metadata server; `error`
// is the system's where it failed.
std::optional<Bytes> read_body(int fd, std::uint64_t most, const Deadline& deadline, int& error) {
  std::uint64_t room = std::min(most + 1, kFirstRead);  // one byte more shows that there is more
  std::shared_ptr<std::uint8_t[]> buffer = std::make_shared_for_overwrite<std::uint8_t[]>(room);
  std::uint64_t done = 0;
  while (done <= most) {
    if (deadline.left() <= 0ns) {
      error = ETIMEDOUT;
      return std::nullopt;
    }
    if (done == room) {
      room = std::min(most + 1, room * 4);
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

// Whoever may write the folder may write what is made in it: hosts of one group share it, with umasks of their own.
bool made(int root, const char* path, mode_t mode) {
  if (mkdirat(root, path, 0777) == 0) return fchmodat(root, path, mode, 0) == 0;
  return errno == EEXIST;
}

struct Found {
  std::string path;  // from the root
  std::string name;
  FileStamp stamp;
};

// Every regular file on a shelf; false: time was up before.
bool for_each_file(int root, Depot::Shelf shelf, const Deadline& deadline,
                   const std::function<void(const Found&)>& visit) {
  const std::string folder = to_string(shelf);
  for (const std::string& shard : list_directory(root, folder.c_str())) {
    if (shard.size() != 2) continue;
    const std::string inside = folder + "/" + shard;
    for (const std::string& name : list_directory(root, inside.c_str())) {
      if (deadline.left() <= 0ns) return false;
      Found found{inside + "/" + name, name, {}};
      struct stat status;
      if (fstatat(root, found.path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) continue;
      found.stamp = FileStamp::of(status);
      visit(found);
    }
  }
  return true;
}

}  // namespace

Result<DirectoryDepot::Folder> DirectoryDepot::folder() {
  const MutexLock lock(mutex_);
  if (folder_ != nullptr) return folder_;
  Fd fd(open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return depot_failure("cannot open the shared folder", root_, errno);
  folder_ = std::make_shared<const Fd>(std::move(fd));
  return folder_;
}

void DirectoryDepot::forget(const Folder& folder) {
  const MutexLock lock(mutex_);
  if (folder_ == folder) folder_ = nullptr;
}

Result<std::optional<Bytes>> DirectoryDepot::read(Shelf shelf, const Digest& name, std::uint64_t most, Time limit) {
  const Deadline deadline(system_clock(), limit);
  const ShardedName path(to_string(shelf), name);
  const auto no_body = [&](const char* why) { return failure(Code::Corrupt, root_ + "/" + path.c_str() + " " + why); };
  for (int attempt = 0;; ++attempt) {
    const bool last = attempt == 1;
    if (deadline.left() <= 0ns) return too_late(root_);
    const auto root = folder();
    if (!root) return root.error();
    // Non-blocking, so that a FIFO cannot hang the caller; a link is never what a writer of ours made.
    const Fd fd(openat((*root)->get(), path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW));
    int error = fd ? 0 : errno;
    if (!fd && error == ENOENT) return std::optional<Bytes>();
    if (fd) {
      if (auto body = read_body(fd.get(), most, deadline, error)) return body;
    }
    switch (error) {
      case EFBIG: return no_body("is longer than it may be");
      case ETIMEDOUT: return too_late(root_);
      // A link, a folder, a socket, a pipe whose writer is silent: somebody put it there, and it is no body.
      case ELOOP:
      case ENOTDIR:
      case EISDIR:
      case ENXIO:
      case EAGAIN: return no_body("is no regular file");
      default: break;
    }
    // What a network file system says of a file that another host has just replaced: gone after a second look.
    if (!passing(error) || last) return depot_failure("cannot read", root_ + "/" + path.c_str(), error);
    if (error == ESTALE) forget(*root);
  }
}

std::string DirectoryDepot::temporary_name() {
  const MutexLock lock(mutex_);
  if (writer_.empty()) writer_ = unique_digits();
  // The process id is looked at each time: a forked child is another writer.
  return std::string(kTemporary) + writer_ + "-" + std::to_string(getpid()) + "-" + std::to_string(sequence_++);
}

Status DirectoryDepot::write_once(const std::string& name, std::initializer_list<std::string_view> parts) {
  const auto root = folder();
  if (!root) return root.error();
  const int directory = (*root)->get();
  struct stat status;
  if (fstat(directory, &status) != 0 || status.st_nlink == 0) {
    forget(*root);
    return failure(Code::Unavailable, root_ + " was removed");
  }
  const mode_t mode = status.st_mode & 07777;
  const std::string shard = name.substr(0, name.find_last_of('/'));
  if (!made(directory, shard.c_str(), mode)) {
    const std::string shelf = shard.substr(0, shard.find('/'));
    if (!made(directory, shelf.c_str(), mode) || !made(directory, shard.c_str(), mode)) {
      const int error = errno;
      if (error == ESTALE) forget(*root);
      return depot_failure("cannot create", root_ + "/" + shard, error);
    }
  }
  return publish_file(directory, shard + "/" + temporary_name(), name, parts, Durability::Unsynced, mode & 0666);
}

Status DirectoryDepot::write(Shelf shelf, const Digest& name, std::initializer_list<std::string_view> parts,
                             Time limit) {
  const Deadline deadline(system_clock(), limit);
  const std::string path = ShardedName(to_string(shelf), name).str();
  std::optional<bool> before;  // whether something was there at first
  const auto there = [&path](const Folder& root) {
    struct stat status;
    return fstatat(root->get(), path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode);
  };
  for (int attempt = 0;; ++attempt) {
    if (deadline.left() <= 0ns) return too_late(root_);
    const auto root = folder();
    if (!root) return root.error();
    if (!before) before = there(*root);
    Status written = write_once(path, parts);
    if (written) return written;
    // Network file systems report a lost race in many ways (ESTALE, EBUSY, ENOENT), and a folder that was removed and
    // made again looks the same; so whatever went wrong is tried once more, from the root on.
    if (attempt == 0) {
      forget(*root);
      continue;
    }
    // Somebody else may have won, or the rename been done though it was said not to be: then it is there, which is all
    // that was wanted.
    if (!*before && there(*root)) return {};
    // The folder is there and can be read: that it takes nothing (full, somebody else's, read only) is no failure of
    // it.
    Error error = std::move(written).error();
    if (error.code == Code::Io) error.code = Code::Refused;
    return error;
  }
}

Status DirectoryDepot::remove(Shelf shelf, const Digest& name, Time limit) {
  if (limit <= 0ns) return too_late(root_);
  const auto root = folder();
  if (!root) return root.error();
  const ShardedName path(to_string(shelf), name);
  if (unlinkat((*root)->get(), path.c_str(), 0) == 0 || errno == ENOENT || errno == ENOTDIR) return {};
  const int error = errno;
  if (error == ESTALE) forget(*root);
  return depot_failure("cannot remove", root_ + "/" + path.c_str(), error);
}

Result<std::vector<Depot::Listed>> DirectoryDepot::list(Shelf shelf, Time limit) {
  const auto root = folder();
  if (!root) return root.error();
  std::vector<Listed> all;
  const bool whole = for_each_file((*root)->get(), shelf, Deadline(system_clock(), limit), [&](const Found& file) {
    const std::optional<Digest> digest = Digest::from_hex(file.name);
    if (digest) all.push_back({*digest, file.stamp.size, std::chrono::nanoseconds(file.stamp.modified_ns)});
  });
  if (!whole) return too_late(root_);
  return all;
}

Status DirectoryDepot::tidy(Time limit) {
  const auto root = folder();
  if (!root) return root.error();
  const Deadline deadline(system_clock(), limit);
  const Time now = system_clock().wall();
  for (const Shelf shelf : {Shelf::Action, Shelf::Content}) {
    const bool whole = for_each_file((*root)->get(), shelf, deadline, [&](const Found& file) {
      const bool abandoned = file.name.starts_with(kTemporary) && now - Time(file.stamp.modified_ns) > kAbandoned;
      if (abandoned) (void)unlinkat((*root)->get(), file.path.c_str(), 0);
    });
    if (!whole) return too_late(root_);
  }
  return {};
}

Status DirectoryDepot::probe(Time limit) {
  if (limit <= 0ns) return too_late(root_);
  // By name: what answers must be what is there now.
  const auto root = folder();
  if (root) forget(*root);
  const auto again = folder();
  return again ? Status() : Status(again.error());
}

}  // namespace kiln
