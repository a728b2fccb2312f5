// SPDX-License-Identifier: Apache-2.0
#include "base/files/lock_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include "base/error.hpp"

namespace kiln {
namespace {

// Every lock file that this process has opened. A child of fork starts its own table and does not touch the table of
// its parent, which may be locked; `before` keeps that table reachable for leak checkers. The table is keyed by process
// id instead of `PerProcess`, which misses a fork that happens during its first use by another thread. If a later
// descendant gets the process id of an ancestor, it waits for the claims of dead processes until its deadline, with no
// other effect.
struct Table {
  const pid_t process;
  Table* const before;
  Mutex mutex;
  std::map<std::pair<dev_t, ino_t>, std::unique_ptr<LockFile>> files KILN_GUARDED_BY(mutex);

  Table(pid_t self, Table* old) : process(self), before(old) {}
};

Table& table_of_this_process() {
  static std::atomic<Table*> current{nullptr};
  const pid_t self = getpid();
  Table* seen = current.load(std::memory_order_acquire);
  while (seen == nullptr || seen->process != self) {
    auto fresh = std::make_unique<Table>(self, seen);
    if (current.compare_exchange_strong(seen, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  }
  return *seen;
}

struct flock record(short type, off_t byte, off_t length = 1) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = length;
  return lock;
}

int control(int fd, int command, struct flock& lock) {
  int result;
  do {
    result = fcntl(fd, command, &lock);
  } while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}

}  // namespace

LockFile::LockFile(Fd fd, const struct stat& status)
    : device_(status.st_dev), inode_(status.st_ino), fd_(fd.release()) {}

Result<LockFile*> LockFile::open(const std::string& path) {
  Table& table = table_of_this_process();
  const MutexLock lock(table.mutex);
  // Looked up by name first: opening a file that is open already would leave a descriptor that can never be closed.
  struct stat status;
  if (stat(path.c_str(), &status) == 0) {
    const auto known = table.files.find({status.st_dev, status.st_ino});
    if (known != table.files.end() && known->second->descriptor_is_ours()) return known->second.get();
  }
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600));
  if (!fd) return io_error("cannot open", path, errno);
  if (fstat(fd.get(), &status) != 0) return io_error("cannot stat", path, errno);
  if (!S_ISREG(status.st_mode)) return make_error(Code::Io, path + " is not a regular file");
  const std::pair id(status.st_dev, status.st_ino);
  if (const auto known = table.files.find(id); known != table.files.end()) {
    known->second->replace_descriptor(std::move(fd));
    return known->second.get();
  }
  const auto place = table.files.emplace(id, nullptr).first;
  try {
    place->second = std::make_unique<LockFile>(std::move(fd), status);
  } catch (const std::bad_alloc&) {
    table.files.erase(place);  // an empty slot would be mistaken for an open file
    throw;
  }
  return place->second.get();
}

off_t LockFile::lock_offset(const Digest& key) {
  std::uint64_t bits;
  std::memcpy(&bits, key.bytes.data(), sizeof bits);
  return static_cast<off_t>(bits >> 2);
}

// A host program can close descriptors that it does not know (daemons do), and the number may now belong to another
// file.
bool LockFile::descriptor_is_ours() const {
  struct stat status;
  return fstat(descriptor(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

// The old descriptor is not closed: either the host program closed it, or closing it would drop our locks.
void LockFile::replace_descriptor(Fd fd) {
  const MutexLock lock(mutex_);
  fd_ = fd.release();
}

int LockFile::descriptor() const {
  const MutexLock lock(mutex_);
  return fd_;
}

LockFile::LockAttempt LockFile::try_lock(off_t byte) {
  {
    // The system call runs under the mutex: it does not block, and no thread sees a byte as held during an attempt.
    const MutexLock lock(mutex_);
    if (const auto held = held_.find(byte); held != held_.end()) {
      return {LockAttempt::Result::HeldByThisProcess, held->second, 0};
    }
    // Recorded before it is locked: a lock that cannot be recorded, for lack of memory, would never be released.
    const auto noted = held_.emplace(byte, ++lock_count_).first;
    struct flock wanted = record(F_WRLCK, byte);
    const int error = control(fd_, F_SETLK, wanted);
    if (error == 0) return {LockAttempt::Result::Acquired, lock_count_, 0};
    held_.erase(noted);
    if (error != EAGAIN && error != EACCES) return {LockAttempt::Result::Failed, 0, error};
  }
  const LockAttempt holder = query_holder(byte);
  // The lock was released in between: it was held when this call tried to take it.
  return holder.result == LockAttempt::Result::Acquired ? LockAttempt{LockAttempt::Result::HeldByOtherProcess, 0, 0}
                                                        : holder;
}

void LockFile::release(off_t byte) {
  {
    const MutexLock lock(mutex_);
    if (held_.erase(byte) == 0) return;
    struct flock free = record(F_UNLCK, byte);
    (void)control(fd_, F_SETLK, free);  // a lock that cannot be released ends with the process
  }
  released_.notify_all();
}

LockFile::ScopedLock::ScopedLock(LockFile& file, off_t byte) : file_(&file), byte_(byte), process_(getpid()) {}

LockFile::ScopedLock::ScopedLock(ScopedLock&& other) noexcept
    : file_(std::exchange(other.file_, nullptr)), byte_(other.byte_), process_(other.process_) {}

LockFile::ScopedLock& LockFile::ScopedLock::operator=(ScopedLock other) noexcept {
  std::swap(file_, other.file_);
  std::swap(byte_, other.byte_);
  std::swap(process_, other.process_);
  return *this;
}

// A child of fork has a copy of this object but not the lock, and must not touch the parent's table.
LockFile::ScopedLock::~ScopedLock() {
  if (file_ != nullptr && getpid() == process_) file_->release(byte_);
}

LockFile::ScopedLock LockFile::try_lock_scoped(const Digest& key) {
  const off_t byte = lock_offset(key);
  return try_lock(byte).result == LockAttempt::Result::Acquired ? ScopedLock(*this, byte) : ScopedLock();
}

bool LockFile::wait_for_local_holder(off_t byte, std::uint64_t holder, std::chrono::nanoseconds time) {
  const MutexLock lock(mutex_);
  const auto over = [&]() KILN_REQUIRES(mutex_) {
    const auto held = held_.find(byte);
    return held == held_.end() || held->second != holder;
  };
  if (!over()) (void)released_.wait_for(mutex_, time);
  return over();
}

LockFile::LockAttempt LockFile::query_holder(off_t byte, off_t length) const {
  struct flock question = record(F_RDLCK, byte, length);
  if (const int error = control(descriptor(), F_GETLK, question); error != 0) {
    return {LockAttempt::Result::Failed, 0, error};
  }
  if (question.l_type == F_UNLCK) return {LockAttempt::Result::Acquired, 0, 0};
  const auto process = question.l_pid > 0 ? static_cast<std::uint64_t>(question.l_pid) : 0;
  return {LockAttempt::Result::HeldByOtherProcess, process, 0, question.l_start, question.l_start + question.l_len};
}

std::optional<off_t> LockFile::held_here(off_t byte, off_t length) const {
  std::optional<off_t> lowest;
  const MutexLock lock(mutex_);
  for (const auto& [held, holding] : held_) {
    if (held >= byte && held - byte < length && (!lowest || held < *lowest)) lowest = held;
  }
  return lowest;
}

}  // namespace kiln
