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
#include "base/files.hpp"
#include "remote/lease_row.hpp"

namespace kiln {
namespace {

using Time = LeaseTable::Time;

constexpr const char* kFolder = "leases";
// Only looking tells whether a lease was renewed. Two looks are this far apart at most (twice it, with what waiters add
// to spread themselves), so that whoever waits sees a holder's death within a second of the lease.
constexpr Time kLook = std::chrono::milliseconds(200);
// Of a file that says nothing that we understand, and the longest that is believed.
constexpr Time kUnknown = std::chrono::seconds(5);
constexpr Time kLongest = std::chrono::hours(1);
// Nobody compiles for so long: what was not touched since is a leftover.
constexpr Time kAbandoned = std::chrono::hours(24);
constexpr std::size_t kMostSeen = 10'000;

Error lease_failure(std::string_view what, const std::string& path, int error) {
  Error failed = io_failure(what, path, error);
  if (error == EACCES || error == EPERM || error == EROFS) failed.code = Code::Refused;
  if (error == ENOENT || error == ENOTDIR || error == ESTALE) failed.code = Code::Unavailable;
  if (error == ELOOP || error == EISDIR || error == ENXIO) failed.code = Code::Corrupt;
  return failed;
}

std::chrono::milliseconds whole(Time time) { return std::chrono::ceil<std::chrono::milliseconds>(time); }

Fd open_row(const std::string& path, int flags) {
  // Non-blocking, so that a FIFO cannot hang the caller.
  return Fd(open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW));
}

// The content of an open file; nothing where it cannot be read.
std::optional<std::string> content_of(int fd) {
  std::string text(LeaseRow::kMostBytes, '\0');
  ssize_t got = 0;
  do {
    got = pread(fd, text.data(), text.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(got));
  return text;
}

// Nothing where there is no such file.
Result<std::optional<std::string>> read_row(const std::string& path) {
  const Fd fd = open_row(path, O_RDONLY);
  if (!fd && errno == ENOENT) return std::optional<std::string>();
  std::optional<std::string> content = fd ? content_of(fd.get()) : std::nullopt;
  if (!content) return lease_failure("cannot read", path, errno);
  return content;
}

// Removes the file if its content is still this one; whether it did. Renamed first: of several who try, one succeeds.
bool withdraw(const std::string& path, const std::string& content, const std::string& own) {
  const std::string aside = path + ".gone-" + own;
  if (rename(path.c_str(), aside.c_str()) != 0) return false;
  const Result<std::optional<std::string>> moved = read_row(aside);
  const bool same = moved && *moved && **moved == content;
  // Another has taken it since we looked. Where somebody was quicker than putting it back there are two holders now,
  // which costs a compile.
  if (!same) (void)link(aside.c_str(), path.c_str());
  (void)unlink(aside.c_str());
  return same;
}

Time modified(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return Time(0);
  return std::chrono::seconds(status.st_mtim.tv_sec) + std::chrono::nanoseconds(status.st_mtim.tv_nsec);
}

// What crashes left: files that nobody touched for a day by the clock of the file system, which dates `fresh` too.
void sweep(const std::string& folder, const std::string& fresh) {
  const Time now = modified(fresh);
  if (now == Time(0)) return;
  for (const std::string& name : list_directory(AT_FDCWD, folder.c_str())) {
    const std::string path = join_path(folder, name);
    const Time then = modified(path);
    if (then != Time(0) && now - then > kAbandoned) (void)unlink(path.c_str());
  }
}

}  // namespace

DirectoryLeases::DirectoryLeases(std::string root, const Clock& clock)
    : root_(std::move(root)), folder_(join_path(root_, kFolder)), clock_(clock) {}

std::string DirectoryLeases::path_of(const RequestKey& request) const { return join_path(folder_, request.hex()); }

Status DirectoryLeases::check(Time limit) const {
  if (limit <= Time(0)) return failure(Code::TimedOut, "there was no time to ask " + root_);
  return {};
}

Time DirectoryLeases::left(const std::string& path, const std::string& content) {
  const std::optional<LeaseRow> row = LeaseRow::parse(content);
  const Time lease = row ? std::min<Time>(row->lease, kLongest) : kUnknown;
  Sights& known = sights_.get();
  const MutexLock lock(known.mutex);
  if (known.of.size() >= kMostSeen) known.of.clear();  // seeing them anew takes one lease, no more
  const Time now = clock_.steady();
  Sight& sight = known.of[path];
  if (sight.content != content || sight.first == Time(0)) sight = {content, now};
  return std::max(lease - (now - sight.first), Time(0));
}

void DirectoryLeases::forget(const std::string& path) {
  Sights& known = sights_.get();
  const MutexLock lock(known.mutex);
  known.of.erase(path);
}

Status DirectoryLeases::make_folder() const {
  struct stat status {};
  if (stat(root_.c_str(), &status) != 0) return lease_failure("cannot open the folder of the leases", root_, errno);
  if (mkdir(folder_.c_str(), 0777) != 0) {
    if (errno == EEXIST) return {};
    return lease_failure("cannot create", folder_, errno);
  }
  (void)chmod(folder_.c_str(), status.st_mode & 07777);
  return {};
}

Result<bool> DirectoryLeases::create(const std::string& path, const std::string& content) const {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  Fd fd(open(path.c_str(), kFlags, 0644));
  if (!fd && errno == ENOENT) {
    if (Status made = make_folder(); !made) return std::move(made).error();
    fd = Fd(open(path.c_str(), kFlags, 0644));
  }
  if (!fd && errno == EEXIST) return false;
  if (!fd) return lease_failure("cannot create", path, errno);
  (void)fchmod(fd.get(), 0644);  // those who wait must be able to look, whatever our umask
  if (Status written = write_all(fd.get(), content, path); !written) {
    (void)unlink(path.c_str());
    return std::move(written).error();
  }
  return true;
}

Result<bool> DirectoryLeases::take(const RequestKey& request, const std::string& owner, Time lease, Time limit) {
  if (Status checked = check(limit); !checked) return std::move(checked).error();
  if (!LeaseRow::may_own(owner)) return failure(Code::InvalidArgument, "this is no owner of a lease");
  const std::string path = path_of(request);
  const std::string mine = LeaseRow{owner, whole(lease), 0}.text();
  Result<bool> created = create(path, mine);
  if (!created || *created) return created;
  const Result<std::optional<std::string>> there = read_row(path);
  if (!there) return there.error();
  if (!*there) return create(path, mine);  // its holder let go just now
  if (left(path, **there) > Time(0)) return false;
  if (!withdraw(path, **there, owner)) return false;
  forget(path);
  created = create(path, mine);
  if (created && *created) sweep(folder_, path);
  return created;
}

Result<bool> DirectoryLeases::renew(const RequestKey& request, const std::string& owner, Time lease, Time limit) {
  if (Status checked = check(limit); !checked) return std::move(checked).error();
  const std::string path = path_of(request);
  const Fd fd = open_row(path, O_RDWR);
  if (!fd && errno == ENOENT) return false;
  const std::optional<std::string> content = fd ? content_of(fd.get()) : std::nullopt;
  if (!content) return lease_failure("cannot read", path, errno);
  std::optional<LeaseRow> row = LeaseRow::parse(*content);
  if (!row || row->owner != owner) return false;
  row->lease = whole(lease);
  ++row->renewals;
  const std::string text = row->text();
  if (pwrite(fd.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    return lease_failure("cannot write", path, errno);
  // Whoever took it over meanwhile has moved this file away.
  struct stat written {};
  struct stat there {};
  const bool still = fstat(fd.get(), &written) == 0 && lstat(path.c_str(), &there) == 0 &&
                     written.st_ino == there.st_ino && written.st_dev == there.st_dev;
  return still;
}

Status DirectoryLeases::release(const RequestKey& request, const std::string& owner, Time limit) {
  if (Status checked = check(limit); !checked) return checked;
  const std::string path = path_of(request);
  const Result<std::optional<std::string>> content = read_row(path);
  if (!content) return content.error();
  const std::optional<LeaseRow> row = *content ? LeaseRow::parse(**content) : std::nullopt;
  if (row && row->owner == owner && LeaseRow::may_own(owner)) (void)withdraw(path, **content, owner);
  return {};
}

Result<Time> DirectoryLeases::held(const RequestKey& request, Time limit) {
  if (Status checked = check(limit); !checked) return std::move(checked).error();
  const std::string path = path_of(request);
  const Result<std::optional<std::string>> content = read_row(path);
  if (!content) return content.error();
  if (!*content) {
    forget(path);
    return Time(0);
  }
  return std::min(left(path, **content), kLook);
}

Result<bool> DirectoryLeases::draw(const RequestKey& request, unsigned count, Time window, Time limit) {
  if (Status checked = check(limit); !checked) return std::move(checked).error();
  // Nobody watches a hedge for as long as it counts, so that it is dated by the file system: against a file that is
  // made now, and by the same clock.
  const std::string path = path_of(request) + ".hedge-";
  const std::string own = std::to_string(getpid()) + "-" + std::to_string(clock_.steady().count());
  const std::string mine = LeaseRow{own, whole(window), 0}.text();
  std::string fresh;
  Result<bool> drawn = false;
  for (unsigned i = 0; i < count && drawn && !*drawn; ++i) {
    const std::string name = path + std::to_string(i);
    drawn = create(name, mine);
    if (!drawn || *drawn) break;
    if (fresh.empty()) {
      fresh = path + "now-" + own;
      if (Result<bool> made = create(fresh, mine); !made) return made;
    }
    const Result<std::optional<std::string>> there = read_row(name);
    if (!there || !*there || modified(fresh) - modified(name) < window) continue;
    if (withdraw(name, **there, own)) drawn = create(name, mine);
  }
  if (!fresh.empty()) (void)unlink(fresh.c_str());
  return drawn;
}

Status DirectoryLeases::probe(Time limit) {
  if (Status checked = check(limit); !checked) return checked;
  if (access(root_.c_str(), R_OK | W_OK | X_OK) == 0) return {};
  return lease_failure("cannot use the folder of the leases", root_, errno);
}

}  // namespace kiln
