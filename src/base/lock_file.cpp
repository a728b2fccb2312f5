#include "base/lock_file.hpp"

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

// Every lock file that this process has opened. A child of fork starts a table of its own and leaves its parent's
// alone, locked or not; `before` only keeps it reachable for leak checkers. The process id tells, and not PerProcess,
// which does not know of a fork during its own first use by another thread. A later descendant that happens to get an
// ancestor's id back would wait for claims of the dead in vain until its deadline, and no worse.
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
  // Looked up by name first: opening a file that we have already would leave a descriptor that can never be closed.
  struct stat status;
  if (stat(path.c_str(), &status) == 0) {
    const auto known = table.files.find({status.st_dev, status.st_ino});
    if (known != table.files.end() && known->second->descriptor_is_ours()) return known->second.get();
  }
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600));
  if (!fd) return io_failure("cannot open", path, errno);
  if (fstat(fd.get(), &status) != 0) return io_failure("cannot look at", path, errno);
  if (!S_ISREG(status.st_mode)) return failure(Code::Io, path + " is not a regular file");
  const std::pair id(status.st_dev, status.st_ino);
  if (const auto known = table.files.find(id); known != table.files.end()) {
    known->second->replace_descriptor(std::move(fd));
    return known->second.get();
  }
  const auto place = table.files.emplace(id, nullptr).first;
  try {
    place->second = std::make_unique<LockFile>(std::move(fd), status);
  } catch (const std::bad_alloc&) {
    table.files.erase(place);  // a place without a file would be taken for one
    throw;
  }
  return place->second.get();
}

off_t LockFile::byte_of(const Digest& key) {
  std::uint64_t bits;
  std::memcpy(&bits, key.bytes.data(), sizeof bits);
  return static_cast<off_t>(bits >> 2);
}

// A host program may close descriptors that it does not know (daemons do), and the number may be another file's by now.
bool LockFile::descriptor_is_ours() const {
  struct stat status;
  return fstat(descriptor(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

// The old one is not closed: either somebody else did, or closing it would drop our locks.
void LockFile::replace_descriptor(Fd fd) {
  const MutexLock lock(mutex_);
  fd_ = fd.release();
}

int LockFile::descriptor() const {
  const MutexLock lock(mutex_);
  return fd_;
}

LockFile::Attempt LockFile::take(off_t byte) {
  {
    // The system call is made under the mutex: it does not wait, and no thread sees a byte as held that is only tried.
    const MutexLock lock(mutex_);
    if (const auto held = held_.find(byte); held != held_.end()) {
      return {Attempt::Result::HeldHere, held->second, 0};
    }
    // Noted before it is locked: what is locked and not noted, for want of memory, would be held for good.
    const auto noted = held_.emplace(byte, ++holdings_).first;
    struct flock wanted = record(F_WRLCK, byte);
    const int error = control(fd_, F_SETLK, wanted);
    if (error == 0) return {Attempt::Result::Taken, holdings_, 0};
    held_.erase(noted);
    if (error != EAGAIN && error != EACCES) return {Attempt::Result::Failed, 0, error};
  }
  const Attempt holder = look(byte);
  // It went in between: to say that it is held is still true of the moment when we asked.
  return holder.result == Attempt::Result::Taken ? Attempt{Attempt::Result::HeldElsewhere, 0, 0} : holder;
}

void LockFile::release(off_t byte) {
  {
    const MutexLock lock(mutex_);
    if (held_.erase(byte) == 0) return;
    struct flock free = record(F_UNLCK, byte);
    (void)control(fd_, F_SETLK, free);  // a lock that cannot be dropped goes with the process
  }
  released_.notify_all();
}

LockFile::Hold::Hold(LockFile& file, off_t byte) : file_(&file), byte_(byte), process_(getpid()) {}

LockFile::Hold::Hold(Hold&& other) noexcept
    : file_(std::exchange(other.file_, nullptr)), byte_(other.byte_), process_(other.process_) {}

LockFile::Hold& LockFile::Hold::operator=(Hold other) noexcept {
  std::swap(file_, other.file_);
  std::swap(byte_, other.byte_);
  std::swap(process_, other.process_);
  return *this;
}

// A child of fork got a copy of this object, not the lock, and must not touch the parent's table either.
LockFile::Hold::~Hold() {
  if (file_ != nullptr && getpid() == process_) file_->release(byte_);
}

LockFile::Hold LockFile::hold(const Digest& key) {
  const off_t byte = byte_of(key);
  return take(byte).result == Attempt::Result::Taken ? Hold(*this, byte) : Hold();
}

bool LockFile::wait_here(off_t byte, std::uint64_t holder, std::chrono::nanoseconds time) {
  const MutexLock lock(mutex_);
  const auto over = [&]() KILN_REQUIRES(mutex_) {
    const auto held = held_.find(byte);
    return held == held_.end() || held->second != holder;
  };
  if (!over()) (void)released_.wait_for(mutex_, time);
  return over();
}

LockFile::Attempt LockFile::look(off_t byte, off_t length) const {
  struct flock question = record(F_RDLCK, byte, length);
  if (const int error = control(descriptor(), F_GETLK, question); error != 0) {
    return {Attempt::Result::Failed, 0, error};
  }
  if (question.l_type == F_UNLCK) return {Attempt::Result::Taken, 0, 0};
  const auto process = question.l_pid > 0 ? static_cast<std::uint64_t>(question.l_pid) : 0;
  return {Attempt::Result::HeldElsewhere, process, 0};
}

}  // namespace kiln
