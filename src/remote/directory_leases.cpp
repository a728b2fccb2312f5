// SPDX-License-Identifier: Apache-2.0
#include "remote/directory_leases.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "remote/lease_record.hpp"

namespace kiln {
namespace {

using Time = LeaseTable::Time;

constexpr const char* kDirectory = "leases";
constexpr std::string_view kHedge = ".hedge-";
constexpr std::string_view kHedgeNow = ".hedge-now-";
constexpr std::string_view kGone = ".gone-";
// Maximum interval between two checks of a lease, because only a check shows whether it was renewed. With the jitter
// that waiters add, the interval is at most twice this value. A waiter therefore detects a dead holder within one
// second after the lease expires.
constexpr Time kPollInterval = std::chrono::milliseconds(200);
// Assumed lease of an unreadable file, and the longest lease that is accepted.
constexpr Time kUnknown = std::chrono::seconds(5);
constexpr Time kMaxDuration = std::chrono::hours(1);
// Longer than any compile: an older file is a leftover.
constexpr Time kStaleTemporaryAge = std::chrono::hours(24);
constexpr std::size_t kMaxSeen = 10'000;

Error lease_failure(std::string_view what, const std::string& path, int error) {
  Error failed = io_error(what, path, error);
  if (error == EACCES || error == EPERM || error == EROFS) failed.code = Code::Denied;
  if (error == ENOENT || error == ENOTDIR || error == ESTALE) failed.code = Code::Unavailable;
  if (error == ELOOP || error == EISDIR || error == ENXIO) failed.code = Code::Corrupt;
  return failed;
}

Error linked_directory(const std::string& path) {
  return make_error(Code::Denied,
                    path +
                        " is a symbolic link, which kiln does not follow in a shared directory; remove the link or "
                        "use its target as the lease directory");
}

std::chrono::milliseconds whole(Time time) { return std::chrono::ceil<std::chrono::milliseconds>(time); }

Fd open_row(int directory, const std::string& name, int flags) {
  // Non-blocking, so that a FIFO cannot hang the caller.
  return Fd(openat(directory, name.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW));
}

// Returns the content of an open file, or nothing if it cannot be read.
std::optional<std::string> content_of(int fd) {
  std::string text(LeaseRecord::kMaxBytes, '\0');
  ssize_t got = 0;
  do {
    got = pread(fd, text.data(), text.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(got));
  return text;
}

Time modified(int directory, const std::string& name) {
  const std::optional<FileStamp> stamp = stamp_in(directory, name.c_str());
  return stamp ? Time(stamp->modified_ns) : Time(0);
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns whether kiln creates files of this name, where <key> is 64 hexadecimal digits: `<key>` for a lease,
// `<key>.hedge-<number>` for a hedge, either with the suffix `.gone-<owner>` while it is withdrawn, and
// `<key>.hedge-now-<number>-<number>`.
bool is_row_name(std::string_view name) {
  constexpr std::size_t kDigits = 2 * sizeof(Digest::bytes);
  if (name.size() < kDigits || !Digest::from_hex(name.substr(0, kDigits))) return false;
  name.remove_prefix(kDigits);
  if (name.starts_with(kHedgeNow)) {
    name.remove_prefix(kHedgeNow.size());
    const std::size_t dash = name.find('-');
    return dash != std::string_view::npos && is_number(name.substr(0, dash)) && is_number(name.substr(dash + 1));
  }
  if (const std::size_t gone = name.find(kGone); gone != std::string_view::npos) {
    if (!LeaseRecord::is_valid_owner(name.substr(gone + kGone.size()))) return false;
    name = name.substr(0, gone);
  }
  return name.empty() || (name.starts_with(kHedge) && is_number(name.substr(kHedge.size())));
}

// Removes files that crashed processes left: kiln's files that were not modified for a day by the clock of the file
// system, which sets the time of `fresh` too. The directory may contain files of other programs; files whose names kiln
// does not create are kept.
void sweep(int directory, const std::string& fresh) {
  const Time now = modified(directory, fresh);
  if (now == Time(0)) return;
  for (const std::string& name : list_directory(directory, ".")) {
    if (!is_row_name(name)) continue;
    const std::optional<FileStamp> stamp = stamp_in(directory, name.c_str());
    if (!stamp || stamp->size > LeaseRecord::kMaxBytes || now - Time(stamp->modified_ns) <= kStaleTemporaryAge)
      continue;
    (void)remove_file_in(directory, name.c_str());
  }
}

}  // namespace

DirectoryLeases::DirectoryLeases(std::string root, const Clock& clock, Resolution resolution)
    : root_(std::move(root)), clock_(clock), resolution_(resolution) {}

Error DirectoryLeases::failed(std::string_view what, const std::string& name, int error) const {
  return lease_failure(what, join_path(root_, join_path(kDirectory, name)), error);
}

Status DirectoryLeases::check(const Deadline& deadline) const {
  if (deadline.remaining() <= Time(0)) return make_error(Code::TimedOut, "no time left for a request to " + root_);
  return {};
}

Time DirectoryLeases::remaining(const std::string& name, const std::string& content) {
  const std::optional<LeaseRecord> row = LeaseRecord::parse(content);
  const Time lease = row ? std::min<Time>(row->lease, kMaxDuration) : kUnknown;
  LeaseObservations& known = sights_.get();
  const MutexLock lock(known.mutex);
  if (known.of.size() >= kMaxSeen) known.of.clear();  // costs at most one lease time to observe them again
  const Time now = clock_.steady();
  LeaseObservation& sight = known.of[name];
  if (sight.content != content || sight.first == Time(0)) sight = {content, now};
  return std::max(lease - (now - sight.first), Time(0));
}

void DirectoryLeases::forget(const std::string& name) {
  LeaseObservations& known = sights_.get();
  const MutexLock lock(known.mutex);
  known.of.erase(name);
}

Result<std::optional<Fd>> DirectoryLeases::open_directory() const {
  const Fd root(open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  Fd directory = root ? open_directory_beneath(root.get(), kDirectory, resolution_) : Fd();
  if (directory) return std::optional<Fd>(std::move(directory));
  if (errno == ENOENT) return std::optional<Fd>();
  if (errno == ELOOP) return linked_directory(join_path(root_, kDirectory));
  return lease_failure("cannot open the lease directory", join_path(root_, kDirectory), errno);
}

Result<Fd> DirectoryLeases::make_directory() const {
  const Fd root(open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  if (!root || fstat(root.get(), &status) != 0) return lease_failure("cannot open the lease directory", root_, errno);
  Fd directory = make_directory_beneath(root.get(), kDirectory, status.st_mode & 07777, resolution_);
  if (directory) return directory;
  if (errno == ELOOP) return linked_directory(join_path(root_, kDirectory));
  return lease_failure("cannot create", join_path(root_, kDirectory), errno);
}

Result<bool> DirectoryLeases::create(int directory, const std::string& name, const std::string& content) const {
  const Fd fd(openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd && errno == EEXIST) return false;
  if (!fd) return failed("cannot create", name, errno);
  (void)fchmod(fd.get(), 0644);  // waiters must be able to read it, regardless of the umask
  if (Status written = write_all(fd.get(), content, name); !written) {
    (void)remove_file_in(directory, name.c_str());
    return std::move(written).error();
  }
  return true;
}

Result<std::optional<std::string>> DirectoryLeases::read_row(int directory, const std::string& name) const {
  const Fd fd = open_row(directory, name, O_RDONLY);
  if (!fd && errno == ENOENT) return std::optional<std::string>();
  std::optional<std::string> content = fd ? content_of(fd.get()) : std::nullopt;
  if (!content) return failed("cannot read", name, errno);
  return content;
}

// Renames the file first, so that only one of several processes succeeds.
bool DirectoryLeases::withdraw(int directory, const std::string& name, const std::string& content,
                               const std::string& own) const {
  const std::string aside = name + std::string(kGone) + own;
  if (renameat(directory, name.c_str(), directory, aside.c_str()) != 0) return false;
  const Result<std::optional<std::string>> moved = read_row(directory, aside);
  const bool same = moved && *moved && **moved == content;
  // Another process has acquired it since the check. If a third process acquires it before this one restores the file,
  // there are two holders, which costs one duplicate compile.
  if (!same) (void)linkat(directory, aside.c_str(), directory, name.c_str(), 0);
  (void)remove_file_in(directory, aside.c_str());
  return same;
}

Result<bool> DirectoryLeases::try_acquire(const RequestKey& request, const std::string& owner, Time lease,
                                          const Deadline& deadline) {
  if (Status checked = check(deadline); !checked) return std::move(checked).error();
  if (!LeaseRecord::is_valid_owner(owner)) return make_error(Code::InvalidArgument, "invalid lease owner");
  const Result<Fd> opened = make_directory();
  if (!opened) return opened.error();
  const int directory = opened->get();
  const std::string name = request.hex();
  const std::string mine = LeaseRecord{owner, whole(lease), 0}.text();
  Result<bool> created = create(directory, name, mine);
  if (!created || *created) return created;
  const Result<std::optional<std::string>> there = read_row(directory, name);
  if (!there) return there.error();
  if (!*there) return create(directory, name, mine);  // the holder has just released it
  if (remaining(name, **there) > Time(0)) return false;
  if (!withdraw(directory, name, **there, owner)) return false;
  forget(name);
  created = create(directory, name, mine);
  if (created && *created) sweep(directory, name);
  return created;
}

Result<bool> DirectoryLeases::renew(const RequestKey& request, const std::string& owner, Time lease,
                                    const Deadline& deadline) {
  if (Status checked = check(deadline); !checked) return std::move(checked).error();
  const Result<std::optional<Fd>> directory = open_directory();
  if (!directory) return directory.error();
  if (!*directory) return false;
  const std::string name = request.hex();
  const Fd fd = open_row((*directory)->get(), name, O_RDWR);
  if (!fd && errno == ENOENT) return false;
  const std::optional<std::string> content = fd ? content_of(fd.get()) : std::nullopt;
  if (!content) return failed("cannot read", name, errno);
  std::optional<LeaseRecord> row = LeaseRecord::parse(*content);
  if (!row || row->owner != owner) return false;
  row->lease = whole(lease);
  ++row->renewals;
  const std::string text = row->text();
  if (pwrite(fd.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    return failed("cannot write", name, errno);
  // A process that took the lease over in the meantime has renamed this file.
  struct stat written {};
  const std::optional<FileStamp> there = stamp_in((*directory)->get(), name.c_str());
  return there && fstat(fd.get(), &written) == 0 && written.st_ino == there->inode && written.st_dev == there->device;
}

Status DirectoryLeases::release(const RequestKey& request, const std::string& owner, const Deadline& deadline) {
  if (Status checked = check(deadline); !checked) return checked;
  const Result<std::optional<Fd>> directory = open_directory();
  if (!directory) return directory.error();
  if (!*directory) return {};
  const std::string name = request.hex();
  const Result<std::optional<std::string>> content = read_row((*directory)->get(), name);
  if (!content) return content.error();
  const std::optional<LeaseRecord> row = *content ? LeaseRecord::parse(**content) : std::nullopt;
  if (row && row->owner == owner && LeaseRecord::is_valid_owner(owner))
    (void)withdraw((*directory)->get(), name, **content, owner);
  return {};
}

Result<Time> DirectoryLeases::remaining_ttl(const RequestKey& request, const Deadline& deadline) {
  if (Status checked = check(deadline); !checked) return std::move(checked).error();
  const Result<std::optional<Fd>> directory = open_directory();
  if (!directory) return directory.error();
  const std::string name = request.hex();
  const Result<std::optional<std::string>> content =
      *directory ? read_row((*directory)->get(), name) : Result<std::optional<std::string>>(std::nullopt);
  if (!content) return content.error();
  if (!*content) {
    forget(name);
    return Time(0);
  }
  return std::min(remaining(name, **content), kPollInterval);
}

Result<bool> DirectoryLeases::try_hedge(const RequestKey& request, unsigned count, Time window,
                                        const Deadline& deadline) {
  if (Status checked = check(deadline); !checked) return std::move(checked).error();
  const Result<Fd> opened = make_directory();
  if (!opened) return opened.error();
  const int directory = opened->get();
  // No process observes a hedge for its whole window. Its age is therefore measured by the clock of the file system,
  // against a file that is created now.
  const std::string own = std::to_string(getpid()) + "-" + std::to_string(clock_.steady().count());
  const std::string mine = LeaseRecord{own, whole(window), 0}.text();
  std::string fresh;
  Result<bool> drawn = false;
  for (unsigned i = 0; i < count && drawn && !*drawn; ++i) {
    const std::string name = request.hex() + std::string(kHedge) + std::to_string(i);
    drawn = create(directory, name, mine);
    if (!drawn || *drawn) break;
    if (fresh.empty()) {
      fresh = request.hex() + std::string(kHedgeNow) + own;
      if (Result<bool> made = create(directory, fresh, mine); !made) return made;
    }
    const Result<std::optional<std::string>> there = read_row(directory, name);
    if (!there || !*there || modified(directory, fresh) - modified(directory, name) < window) continue;
    if (withdraw(directory, name, **there, own)) drawn = create(directory, name, mine);
  }
  if (!fresh.empty()) (void)remove_file_in(directory, fresh.c_str());
  return drawn;
}

Status DirectoryLeases::probe(const Deadline& deadline) {
  if (Status checked = check(deadline); !checked) return checked;
  if (access(root_.c_str(), R_OK | W_OK | X_OK) == 0) return {};
  return lease_failure("cannot use the lease directory", root_, errno);
}

}  // namespace kiln
