// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/files/files.hpp"
#include "base/mutex.hpp"

namespace kiln::test {

/// A FUSE file server that represents a network file system: one flat directory of files that other hosts edit, with
/// times of the server's own clock, which the test sets. The client caches nothing, so an edit is visible immediately.
/// It implements the kernel's protocol itself and needs no library. Thread-safe.
class FuseServer {
 public:
  /// Mounts it. The caller must be in its own mount namespace.
  explicit FuseServer(std::string directory)
      : directory_(std::move(directory)), device_(open("/dev/fuse", O_RDWR | O_CLOEXEC)) {
    if (!device_) return;
    const std::string options = "fd=" + std::to_string(device_.get()) + ",rootmode=40000,user_id=0,group_id=0";
    mounted_ = mount("kiln-test", directory_.c_str(), "fuse.kiln-test", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
    if (mounted_) thread_ = std::thread([this] { serve(); });
  }
  ~FuseServer() {
    if (!mounted_) return;
    (void)umount2(directory_.c_str(), MNT_FORCE);  // ends the thread's read
    (void)umount2(directory_.c_str(), MNT_DETACH);
    thread_.join();
  }
  FuseServer(const FuseServer&) = delete;
  FuseServer& operator=(const FuseServer&) = delete;

  explicit operator bool() const { return mounted_; }

  /// Sets the server's clock in whole seconds, which is the resolution of the file times.
  void set_time(std::int64_t seconds) {
    const MutexLock lock(mutex_);
    now_ = seconds;
  }
  /// Writes a file as another host does.
  void write(const std::string& name, const std::string& content) {
    const MutexLock lock(mutex_);
    File& file = files_[name];
    if (file.node == 0) file.node = FUSE_ROOT_ID + files_.size();
    file.content = content;
    file.changed = now_;
  }

 private:
  struct File {
    std::uint64_t node = 0;
    std::string content;
    std::int64_t changed = 0;
  };

  void serve() {
    std::vector<char> buffer(std::size_t{1} << 20);
    while (true) {
      const ssize_t got = read(device_.get(), buffer.data(), buffer.size());
      if (got < 0 && (errno == EINTR || errno == ENOENT || errno == EAGAIN)) continue;
      if (got < static_cast<ssize_t>(sizeof(fuse_in_header))) return;  // unmounted
      fuse_in_header head{};
      std::memcpy(&head, buffer.data(), sizeof head);
      handle(head, buffer.data() + sizeof head);
    }
  }

  void handle(const fuse_in_header& head, const char* body) {
    const MutexLock lock(mutex_);
    switch (head.opcode) {
      case FUSE_INIT: {
        fuse_init_out out{};
        out.major = FUSE_KERNEL_VERSION;
        out.minor = 31;  // supported by every kernel that tests run on; fixes the structure sizes
        out.max_write = 4096;
        return answer(head, &out, sizeof out);
      }
      case FUSE_LOOKUP: {
        const auto found = files_.find(body);
        if (found == files_.end()) return reject(head, ENOENT);
        fuse_entry_out out{};
        out.nodeid = found->second.node;
        out.attr = attributes(found->second);
        return answer(head, &out, sizeof out);
      }
      case FUSE_GETATTR: {
        const File* file = file_of(head.nodeid);
        fuse_attr_out out{};
        out.attr = file != nullptr ? attributes(*file) : directory_attributes();
        return answer(head, &out, sizeof out);
      }
      case FUSE_OPEN:
      case FUSE_OPENDIR: {
        fuse_open_out out{};
        out.open_flags = FOPEN_DIRECT_IO;
        return answer(head, &out, sizeof out);
      }
      case FUSE_READ: return read_from(head, body);
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET: return;  // has no response
      case FUSE_RELEASE:
      case FUSE_RELEASEDIR:
      case FUSE_FLUSH:
      case FUSE_ACCESS: return answer(head, nullptr, 0);
      case FUSE_STATFS: {
        fuse_statfs_out out{};
        return answer(head, &out, sizeof out);
      }
      default: return reject(head, ENOSYS);
    }
  }

  void read_from(const fuse_in_header& head, const char* body) KILN_REQUIRES(mutex_) {
    fuse_read_in in{};
    std::memcpy(&in, body, sizeof in);
    const File* file = file_of(head.nodeid);
    if (file == nullptr) return reject(head, EISDIR);
    const std::size_t start = std::min<std::size_t>(in.offset, file->content.size());
    const std::size_t size = std::min<std::size_t>(in.size, file->content.size() - start);
    answer(head, file->content.data() + start, size);
  }

  const File* file_of(std::uint64_t node) const KILN_REQUIRES(mutex_) {
    for (const auto& [name, file] : files_) {
      if (file.node == node) return &file;
    }
    return nullptr;
  }

  static fuse_attr attributes(const File& file) {
    fuse_attr attr{};
    attr.ino = file.node;
    attr.size = file.content.size();
    attr.mode = S_IFREG | 0644;
    attr.nlink = 1;
    attr.mtime = attr.ctime = attr.atime = static_cast<std::uint64_t>(file.changed);
    return attr;
  }
  static fuse_attr directory_attributes() {
    fuse_attr attr{};
    attr.ino = FUSE_ROOT_ID;
    attr.mode = S_IFDIR | 0755;
    attr.nlink = 2;
    return attr;
  }

  void answer(const fuse_in_header& head, const void* data, std::size_t size) const {
    fuse_out_header out{static_cast<std::uint32_t>(sizeof(fuse_out_header) + size), 0, head.unique};
    std::string message(reinterpret_cast<const char*>(&out), sizeof out);
    message.append(static_cast<const char*>(data), size);
    (void)!::write(device_.get(), message.data(), message.size());
  }
  void reject(const fuse_in_header& head, int error) const {
    const fuse_out_header out{sizeof(fuse_out_header), -error, head.unique};
    (void)!::write(device_.get(), &out, sizeof out);
  }

  const std::string directory_;
  const Fd device_;
  bool mounted_ = false;
  Mutex mutex_;
  std::map<std::string, File> files_ KILN_GUARDED_BY(mutex_);
  std::int64_t now_ KILN_GUARDED_BY(mutex_) = 1;
  std::thread thread_;
};

}  // namespace kiln::test
