// SPDX-License-Identifier: Apache-2.0
#include "cache/local_claims.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <random>
#include <utility>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/files/lock_file.hpp"
#include "base/process/system_info.hpp"
#include "cache/cache_owners.hpp"

namespace kiln {
namespace {

using std::chrono::nanoseconds;
using Attempt = LockFile::LockAttempt;

// Interval between two polls of a lock of another process. It is short at first, for compiles that are nearly done, and
// then a fraction of the time already waited. Each poll wakes the process: 256 processes that poll every 18 ms cause
// 14,000 wakeups a second next to the compile they wait for.
constexpr nanoseconds kInitialPollInterval = std::chrono::milliseconds(1);
constexpr nanoseconds kMaxPollInterval = std::chrono::milliseconds(18);
constexpr nanoseconds kMaxTotalSleep = std::chrono::milliseconds(500);
// The same while no caller waits. The wait is canceled and starts again when one does.
constexpr nanoseconds kMaxBackgroundSleep = std::chrono::seconds(2);
constexpr int kPartOfWait = 8;
// Interval of the check for a stopped holder, which reads a file of /proc.
constexpr nanoseconds kBetweenChecks = std::chrono::seconds(1);

struct LocalClaim final : Claim {
  LockFile::ScopedLock lock;
};

Claims::AcquireResult answer(Claims::Outcome outcome, std::string reason = {}) {
  return {outcome, nullptr, std::move(reason)};
}

Claims::AcquireResult failed(const std::string& directory, int error) {
  return answer(Claims::Outcome::Unavailable, io_error("cannot lock", join_path(directory, "locks"), error).message);
}

nanoseconds next_poll_interval(nanoseconds interval, nanoseconds waited, bool is_background) {
  const nanoseconds maximum = is_background ? kMaxBackgroundSleep : kMaxTotalSleep;
  return std::min(interval * 3 / 2, std::max(kMaxPollInterval, std::min(waited / kPartOfWait, maximum)));
}

bool is_stopped(const Attempt& attempt) {
  return attempt.result == Attempt::Result::HeldByOtherProcess && attempt.holder != 0 &&
         is_process_stopped(static_cast<pid_t>(attempt.holder));
}

Claims::AcquireResult timed_out(const Attempt& attempt, bool stopped) {
  std::string reason = "another thread of this process is compiling it";
  if (attempt.result == Attempt::Result::HeldByOtherProcess) {
    const std::string holder = attempt.holder == 0 ? "another process" : "process " + std::to_string(attempt.holder);
    reason = holder + (stopped ? " was compiling it and is stopped" : " is compiling it");
  }
  return {Claims::Outcome::TimedOut, nullptr, std::move(reason)};
}

// Creates the directory only if opening the file fails, so that the common path creates nothing. A missing cache
// directory is created in the same way as a store creates it, with private parent directories.
Result<LockFile*> open_locks(const std::string& directory, const std::string& cache_root) {
  if (directory.empty()) return make_error(Code::Unavailable, "there is no directory for locks");
  const std::string path = join_path(directory, "locks");
  if (Result<LockFile*> file = LockFile::open(path)) return file;
  if (access(directory.c_str(), F_OK) != 0) {
    if (!cache_root.empty() && directory == join_path(cache_root, "v1")) {
      if (Status made = make_directories(cache_root, 0755); !made) return std::move(made).error();
    }
    if (Status made = make_directories(directory, 0755); !made) return std::move(made).error();
  }
  return LockFile::open(path);  // another process may have created the directory
}

// If a directory is missing, its nearest existing parent decides, because the directory would be created there.
std::string nearest_existing(std::string path) {
  while (!path.empty() && access(path.c_str(), F_OK) != 0) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    path.resize(slash);
  }
  return path.empty() ? "/" : path;
}

}  // namespace

LocalClaims::LocalClaims(std::string directory, const Clock& clock) : LocalClaims(std::move(directory), {}, clock) {}

LocalClaims::LocalClaims(std::string directory, std::string cache_root, const Clock& clock)
    : directory_(std::move(directory)), cache_root_(std::move(cache_root)), clock_(clock) {}

LocalClaims LocalClaims::for_cache(std::string cache_root, const Clock& clock) {
  return LocalClaims({}, std::move(cache_root), clock);
}

Claims::AcquireResult LocalClaims::acquire(const RequestKey& request, std::chrono::milliseconds wait,
                                           const RequestContext& context) {
  const nanoseconds start = clock_.steady();
  const nanoseconds deadline = start + std::clamp(wait, std::chrono::milliseconds(0), kMaxClaimWait);
  const std::string directory = cache_root_.empty() ? directory_ : claims_directory(cache_root_);
  const Result<LockFile*> opened = open_locks(directory, cache_root_);
  if (!opened) return answer(Outcome::Unavailable, opened.error().message);
  LockFile& file = **opened;
  const off_t byte = LockFile::lock_offset(request.digest);

  // Allocated before the lock is taken: if the allocation failed afterwards, the lock would never be released.
  auto claim = std::make_unique<LocalClaim>();
  const Attempt first = file.try_lock(byte);
  if (first.result == Attempt::Result::Acquired) {
    claim->lock = LockFile::ScopedLock(file, byte);
    return {Outcome::Acquired, std::move(claim), {}};
  }
  if (first.result == Attempt::Result::Failed) return failed(directory, first.error);

  std::minstd_rand jitter(static_cast<unsigned>(getpid()) ^ static_cast<unsigned>(deadline.count()));
  StoppedHolder stopped;
  nanoseconds next_check = start;
  for (nanoseconds interval = kInitialPollInterval;;
       interval = next_poll_interval(interval, clock_.steady() - start, context.is_background())) {
    const nanoseconds now = clock_.steady();
    const nanoseconds remaining = deadline - now;
    if (remaining <= nanoseconds(0) || context.is_cancelled()) return timed_out(first, is_stopped(first));
    if (now >= next_check) {
      next_check = now + kBetweenChecks;
      if (stopped.is_given_up(is_stopped(first), now)) return timed_out(first, true);
    }
    if (first.result == Attempt::Result::HeldByThisProcess) {
      // In slices, so that the injected clock is checked regularly.
      if (file.wait_for_local_holder(byte, first.holder, std::min(remaining, kMaxPollInterval)))
        return answer(Outcome::ReleasedByOther);
      continue;
    }
    const nanoseconds pause = interval * (75 + static_cast<int>(jitter() % 50)) / 100;
    context.sleep(clock_, std::min(remaining, pause));
    const Attempt holder = file.query_holder(byte);
    if (holder.result == Attempt::Result::Failed) return failed(directory, holder.error);
    // The holder changed: the previous holder released the claim between two polls.
    const bool changed = first.holder != 0 && holder.holder != 0 && holder.holder != first.holder;
    if (holder.result == Attempt::Result::Acquired || changed) return answer(Outcome::ReleasedByOther);
  }
}

std::string claims_directory(const std::string& cache_root) {
  std::string beside = join_path(cache_root, "v1");
  const std::string existing = nearest_existing(beside);
  const Fd fd(open(existing.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  // A user that can write to the directory could block all others; a store rejects such a directory for its own
  // reasons.
  const bool rejected = !check_above_cache(cache_root, {}) ||
                        (access(cache_root.c_str(), F_OK) == 0 && !open_trusted_directory(cache_root));
  if (fd && !rejected && !is_network_filesystem(fd.get()) &&
      faccessat(AT_FDCWD, existing.c_str(), W_OK | X_OK, AT_EACCESS) == 0)
    return beside;
  Result<std::string> local = host_local_directory();
  return local ? std::move(*local) : beside;
}

}  // namespace kiln
