#include "claim/local_claims.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <random>
#include <utility>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/lock_file.hpp"

namespace kiln {
namespace {

using std::chrono::nanoseconds;
using Attempt = LockFile::Attempt;

// How long between two looks at a lock of another process: short at first, for compiles that are nearly done, then a
// small part of what was waited already. A look wakes a process up: 256 processes that look every 18 ms are 14,000
// wake-ups a second beside the compile that they wait for.
constexpr nanoseconds kFirstNap = std::chrono::milliseconds(1);
constexpr nanoseconds kLongestNap = std::chrono::milliseconds(18);
constexpr nanoseconds kLongestNapAtAll = std::chrono::milliseconds(500);
constexpr int kPartOfWait = 8;
constexpr std::chrono::milliseconds kForever =
    std::chrono::hours(24 * 365);  // longer waits would overflow the clock's nanoseconds

struct LocalClaim final : Claim {
  LockFile::Hold lock;
};

Claims::Answer answer(Claims::Outcome outcome, std::string reason = {}) {
  return {outcome, nullptr, std::move(reason)};
}

Claims::Answer failed(const std::string& folder, int error) {
  return answer(Claims::Outcome::Unavailable, io_failure("cannot lock", join_path(folder, "locks"), error).message);
}

nanoseconds next_nap(nanoseconds nap, nanoseconds waited) {
  return std::min(nap * 3 / 2, std::max(kLongestNap, std::min(waited / kPartOfWait, kLongestNapAtAll)));
}

std::string held_by(const Attempt& attempt) {
  if (attempt.result == Attempt::Result::HeldHere) return "another thread of this process is compiling it";
  if (attempt.holder == 0) return "another process is compiling it";
  return "process " + std::to_string(attempt.holder) + " is compiling it";
}

// The folder is made only where the file cannot be opened without: the common road makes no folder.
Result<LockFile*> open_locks(const std::string& folder) {
  if (folder.empty()) return failure(Code::Unavailable, "there is no folder for locks");
  const std::string path = join_path(folder, "locks");
  if (Result<LockFile*> file = LockFile::open(path)) return file;
  if (access(folder.c_str(), F_OK) != 0) {
    if (Status made = make_directories(folder, 0755); !made) return std::move(made).error();
  }
  return LockFile::open(path);  // somebody else may have made the folder meanwhile
}

// Where a folder is missing, what is above it decides: it would be made there.
std::string nearest_existing(std::string path) {
  while (!path.empty() && access(path.c_str(), F_OK) != 0) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    path.resize(slash);
  }
  return path.empty() ? "/" : path;
}

}  // namespace

LocalClaims::LocalClaims(std::string folder, const Clock& clock) : LocalClaims(std::move(folder), {}, clock) {}

LocalClaims::LocalClaims(std::string folder, std::string cache_root, const Clock& clock)
    : folder_(std::move(folder)), cache_root_(std::move(cache_root)), clock_(clock) {}

LocalClaims LocalClaims::for_cache(std::string cache_root, const Clock& clock) {
  return LocalClaims({}, std::move(cache_root), clock);
}

Claims::Answer LocalClaims::acquire(const RequestKey& request, std::chrono::milliseconds wait,
                                    const std::stop_token& stop) {
  const nanoseconds start = clock_.steady();
  const nanoseconds deadline = start + std::clamp(wait, std::chrono::milliseconds(0), kForever);
  const std::string folder = cache_root_.empty() ? folder_ : claims_folder(cache_root_);
  const Result<LockFile*> opened = open_locks(folder);
  if (!opened) return answer(Outcome::Unavailable, opened.error().message);
  LockFile& file = **opened;
  const off_t byte = LockFile::byte_of(request.digest);

  // Made before anything is locked: without memory for whoever lets go of it, a lock would be held for good.
  auto claim = std::make_unique<LocalClaim>();
  const Attempt first = file.take(byte);
  if (first.result == Attempt::Result::Taken) {
    claim->lock = LockFile::Hold(file, byte);
    return {Outcome::Mine, std::move(claim), {}};
  }
  if (first.result == Attempt::Result::Failed) return failed(folder, first.error);

  std::minstd_rand jitter(static_cast<unsigned>(getpid()) ^ static_cast<unsigned>(deadline.count()));
  for (nanoseconds nap = kFirstNap;; nap = next_nap(nap, clock_.steady() - start)) {
    const nanoseconds left = deadline - clock_.steady();
    if (left <= nanoseconds(0) || stop.stop_requested()) return answer(Outcome::TimedOut, held_by(first));
    if (first.result == Attempt::Result::HeldHere) {
      // In slices, so that the clock that was given to us is looked at now and then.
      if (file.wait_here(byte, first.holder, std::min(left, kLongestNap))) return answer(Outcome::Finished);
      continue;
    }
    clock_.sleep(std::min(left, nap * (75 + static_cast<int>(jitter() % 50)) / 100));
    const Attempt now = file.look(byte);
    if (now.result == Attempt::Result::Failed) return failed(folder, now.error);
    // Another holder than before: the one that we waited for let go between two looks.
    const bool changed = first.holder != 0 && now.holder != 0 && now.holder != first.holder;
    if (now.result == Attempt::Result::Taken || changed) return answer(Outcome::Finished);
  }
}

std::string claims_folder(const std::string& cache_root) {
  std::string beside = join_path(cache_root, "v1");
  const std::string existing = nearest_existing(beside);
  const Fd fd(open(existing.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  // Whoever may write to the folder could keep everybody waiting; a store refuses it for its own reasons.
  const bool refused = access(cache_root.c_str(), F_OK) == 0 && !open_trusted_directory(cache_root);
  if (fd && !refused && !on_network(fd.get()) && faccessat(AT_FDCWD, existing.c_str(), W_OK | X_OK, AT_EACCESS) == 0)
    return beside;
  Result<std::string> local = host_local_directory();
  return local ? std::move(*local) : beside;
}

}  // namespace kiln
