// SPDX-License-Identifier: Apache-2.0
#include "base/files/mounts.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/hash.hpp"

namespace kiln {
namespace {

constexpr unsigned kUniqueMountId = 0x4000U;  // STATX_MNT_ID_UNIQUE, which older headers do not have
constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t nanoseconds_of(const statx_timestamp& time) { return time.tv_sec * kSecond + time.tv_nsec; }

}  // namespace

FileSystemKind kind_of(const struct statfs& status) {
  switch (static_cast<std::uint32_t>(status.f_type)) {
    case EXT4_SUPER_MAGIC:  // and ext2, ext3
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case NILFS_SUPER_MAGIC:
    case REISERFS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
    case 0x3153464A:  // JFS
    case 0x24051905:  // UBIFS
    case 0x2FC12FC1:  // ZFS
    case 0xCA451A4E:  // bcachefs
      return FileSystemKind::Local;
    case 0xE0F5E1E2:  // EROFS
    case SQUASHFS_MAGIC:
    case ISOFS_SUPER_MAGIC:
    case CRAMFS_MAGIC:
    case 0x7275:  // romfs
    case OVERLAYFS_SUPER_MAGIC: return FileSystemKind::Image;
    case NFS_SUPER_MAGIC:
    case SMB_SUPER_MAGIC:
    case 0xFF534D42:  // CIFS
    case 0xFE534D42:  // SMB2
    case 0x0BD00BD0:  // Lustre
    case 0x47504653:  // GPFS
    case 0x00C36400:  // Ceph
    case 0x19830326:  // BeeGFS
    case CODA_SUPER_MAGIC:
    case AFS_SUPER_MAGIC:
    case AFS_FS_MAGIC: return FileSystemKind::Network;
    case FUSE_SUPER_MAGIC:  // sshfs, gcsfuse, virtiofs and the like
    case V9FS_MAGIC: return FileSystemKind::Userspace;
    default: return FileSystemKind::Unknown;
  }
}

struct Mounts::Status {
  FileStamp stamp;
  std::optional<std::uint64_t> unique_id;  // id of the mount, unique since boot
};

std::optional<Mounts::Status> Mounts::status_of(int fd, const char* path) const {
  struct statx found;
  const unsigned wanted = STATX_BASIC_STATS | (ids_ == Ids::Unique ? kUniqueMountId : 0U);
  const int flags = AT_STATX_SYNC_AS_STAT | (*path != 0 ? 0 : AT_EMPTY_PATH);
  if (statx(fd, path, flags, wanted, &found) == 0) {
    if (!S_ISREG(found.stx_mode)) return std::nullopt;
    Status status{{makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino, found.stx_size,
                   nanoseconds_of(found.stx_mtime), nanoseconds_of(found.stx_ctime)},
                  std::nullopt};
    if ((found.stx_mask & wanted & kUniqueMountId) != 0) status.unique_id = found.stx_mnt_id;
    return status;
  }
  if (errno != EPERM && errno != ENOSYS) return std::nullopt;
  struct stat plain;  // for a sandbox that rejects statx
  if (fstatat(fd, path, &plain, *path != 0 ? 0 : AT_EMPTY_PATH) != 0 || !S_ISREG(plain.st_mode)) return std::nullopt;
  return Status{FileStamp::of(plain), std::nullopt};
}

// Returns a counter that increases whenever the mount table of this process has changed; 0 if unknown. The kernel
// reports each change once per open table, and a child of fork shares the table of its parent.
std::uint64_t Mounts::epoch() {
  const MutexLock lock(mutex_);
  if (table_owner_ != getpid()) {
    table_ = Fd(open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
    table_owner_ = getpid();
    devices_.clear();
    ++epoch_;
  }
  if (!table_) return 0;
  pollfd changes{table_.get(), POLLPRI, 0};
  if (poll(&changes, 1, 0) < 0 || (changes.revents & (POLLERR | POLLPRI)) != 0) {
    devices_.clear();
    ++epoch_;
  }
  return epoch_;
}

std::uint64_t Mounts::unique_tag(std::uint64_t id) {
  const MutexLock lock(mutex_);
  if (!boot_) {
    // Files of /proc have size 0; one read returns the whole file.
    char text[64];
    const Fd fd(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    const ssize_t got = fd ? read(fd.get(), text, sizeof text) : 0;
    boot_.emplace(text, got > 0 ? static_cast<std::size_t>(got) : 0);
  }
  if (boot_->empty()) return 0;
  const std::uint64_t tag = xxh3(as_bytes(*boot_ + std::to_string(id)));
  return tag != 0 ? tag : 1;
}

// Returns nothing if the mount changed since the file was checked: the result would not describe the file's mount.
std::optional<FileSystemKind> Mounts::file_system_of(const Status& status, int fd, const char* path) const {
  struct statfs system;
  if ((*path != 0 ? statfs(path, &system) : fstatfs(fd, &system)) != 0) return std::nullopt;
  const std::optional<Status> again = status_of(fd, path);
  if (!again || again->unique_id != status.unique_id || again->stamp.device != status.stamp.device) return std::nullopt;
  return kind_of(system);
}

Mounts::Mount Mounts::mount_of(const Status& status, int fd, const char* path) {
  const std::uint64_t id = *status.unique_id;
  const auto* last = last_.load(std::memory_order_acquire);
  if (last != nullptr && last->first == id) return last->second;
  {
    const MutexLock lock(mutex_);
    if (const auto found = known_.find(id); found != known_.end()) {
      last_.store(&*found, std::memory_order_release);
      return found->second;
    }
  }
  // Without the lock, because a server may respond slowly.
  const std::optional<FileSystemKind> kind = file_system_of(status, fd, path);
  if (!kind) return {};
  const Mount mount{*kind, unique_tag(id)};
  const MutexLock lock(mutex_);
  known_.emplace(id, mount);
  return mount;
}

Mounts::Mount Mounts::mount_in_epoch(const Status& status, int fd, const char* path, std::uint64_t epoch) {
  {
    const MutexLock lock(mutex_);
    const auto found = devices_.find(status.stamp.device);
    if (epoch != 0 && epoch == epoch_ && found != devices_.end()) return {found->second, epoch};
  }
  const std::optional<FileSystemKind> kind = file_system_of(status, fd, path);
  if (!kind) return {};
  const MutexLock lock(mutex_);
  if (epoch != 0 && epoch == epoch_) devices_.emplace(status.stamp.device, *kind);
  return {*kind, epoch};
}

std::optional<FileState> Mounts::state_of(int fd, const char* path) {
  std::optional<Status> status = status_of(fd, path);
  if (!status) return std::nullopt;
  Mount mount;
  if (status->unique_id) {
    mount = mount_of(*status, fd, path);
  } else {
    // In this order, so that a change between the two calls shows in the next epoch.
    const std::uint64_t now = epoch();
    status = status_of(fd, path);
    if (!status) return std::nullopt;
    mount = mount_in_epoch(*status, fd, path, now);
  }
  FileState state{status->stamp, 0, false, FileState::Scope::Host};
  state.external_clock = mount.kind != FileSystemKind::Local && mount.kind != FileSystemKind::Image;
  // A change time of whole seconds was not set by a nanosecond clock. An image builder may have set it, also on a
  // writable file system, and may have used the same time in another image.
  const bool by_stamp_alone = (mount.kind == FileSystemKind::Local || mount.kind == FileSystemKind::Network) &&
                              status->stamp.changed_ns % kSecond != 0;
  if (by_stamp_alone) return state;
  state.mount = mount.tag;
  state.scope = mount.tag == 0      ? FileState::Scope::Now
                : status->unique_id ? FileState::Scope::Host
                                    : FileState::Scope::Process;
  return state;
}

std::optional<FileState> Mounts::look(const char* path) { return state_of(AT_FDCWD, path); }
std::optional<FileState> Mounts::look(int fd) { return state_of(fd, ""); }

}  // namespace kiln
