// SPDX-License-Identifier: Apache-2.0
#include "base/files/file_digest_cache.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "base/files/lock_file.hpp"
#include "base/hash.hpp"
#include "base/process/system_info.hpp"

namespace kiln {
namespace {

using std::chrono::nanoseconds;

constexpr auto kMinStableAge = std::chrono::seconds(2);
constexpr auto kPollInterval = std::chrono::seconds(1);  // interval at which a waiter checks for a missed notification
// Maximum age of a digest that is reused within one request if all files are read.
constexpr auto kMaxReuseAge = std::chrono::seconds(1);
// No compiler input is larger. Hints of other hosts can name any file below the working directory.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;
// Digesting a 100 MB compiler library takes 0.1 s of CPU time, or 0.35 s on a processor without SHA instructions, which
// every process of a host with an empty cache would spend. From this size on one process digests the file and the
// others wait for its result, at most kMaxLockWait in total: on a busy host the one process takes seconds.
constexpr std::uint64_t kLarge = std::uint64_t{16} << 20;
constexpr auto kMaxLockWait = std::chrono::seconds(10);
// The interval grows with the wait: hundreds of waiting processes must leave the processor to the one that digests.
constexpr auto kLockPollInterval = std::chrono::milliseconds(5);
constexpr auto kMaxLockPollInterval = std::chrono::milliseconds(100);

// Digests a file. A file that is longer than its stat size is rejected: another process is writing to it, or it is not
// on a disk (files of /proc have size 0), and reading might not end.
Result<Digest> digest_of(int fd, std::uint64_t size, const std::string& path) {
  Sha256 hash;
  std::uint64_t done = 0;
  std::vector<std::uint8_t> buffer(std::size_t{1} << 18);
  while (true) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error("cannot read", path, errno);
    if (got == 0) return hash.finish();
    done += static_cast<std::uint64_t>(got);
    if (done > size) return make_error(Code::Io, path + " grew while it was read");
    hash.add({buffer.data(), static_cast<std::size_t>(got)});
  }
}

// A lock on digesting a large file, across the processes of this host. If the lock is not available in time, or a
// stopped process holds it, this process digests the file itself.
class CrossProcessDigestLock {
 public:
  CrossProcessDigestLock(const std::string& path, const Clock& clock, nanoseconds timeout) {
    const Result<std::string> directory = host_local_directory();
    if (!directory) return;
    const Result<LockFile*> file = LockFile::open(*directory + "/digesting");
    if (!file) return;
    const Digest key = sha256(path);
    const nanoseconds start = clock.steady();
    while (!(lock_ = (*file)->try_lock_scoped(key)) && waited_ < timeout) {
      const auto look = (*file)->query_holder(LockFile::lock_offset(key));
      if (look.result == LockFile::LockAttempt::Result::Failed ||
          (look.holder != 0 && is_process_stopped(static_cast<pid_t>(look.holder))))
        return;
      const auto interval = std::clamp<nanoseconds>(waited_ / 4, kLockPollInterval, kMaxLockPollInterval);
      clock.sleep(std::min(interval, timeout - waited_));
      waited_ = clock.steady() - start;
    }
  }

  /// Returns how long another process held the lock. If nonzero, the digest may be available now.
  nanoseconds waited() const { return waited_; }

 private:
  LockFile::ScopedLock lock_;
  nanoseconds waited_{0};
};

}  // namespace

FileDigestCache::FileDigestCache(std::string cache_file, const Clock& clock)
    : FileDigestCache(std::move(cache_file), Options(), clock) {}
FileDigestCache::FileDigestCache(std::string cache_file, Options options, const Clock& clock)
    : cache_file_(std::move(cache_file)), options_(options), clock_(clock), mounts_(options.mount_ids),
      lock_wait_left_(kMaxLockWait) {}
FileDigestCache::~FileDigestCache() = default;

const DigestSlot* FileDigestCache::slot(std::size_t table, std::uint64_t path_hash, const FileState& state) {
  if (cache_file_.empty() || state.scope != FileState::Scope::Host) return nullptr;
  auto& opened = tables_.at(table);
  if (!opened) opened = DigestTable::open(table == 0 ? cache_file_ : host_local_path() + "/digests");
  const DigestSlot* found = *opened != nullptr ? (*opened)->find(path_hash) : nullptr;
  return found != nullptr && found->stamp == state.stamp && found->mount == state.mount ? found : nullptr;
}

std::optional<Digest> FileDigestCache::remembered(const std::string& path, const FileState& state) {
  if (const auto found = new_digests_.find(path);
      found != new_digests_.end() && found->second.state.same_as(state) && found->second.first_seen.count() == 0) {
    return found->second.digest;
  }
  const std::uint64_t hash = DigestSlot::hash_of(path);
  for (std::size_t table = 0; table < tables_.size(); ++table) {
    const DigestSlot* found = slot(table, hash, state);
    if (found != nullptr && found->first_seen_ns == 0) return found->digest;
  }
  return std::nullopt;
}

nanoseconds FileDigestCache::first_seen(const std::string& path, const FileState& state) {
  nanoseconds first{0};
  const auto consider = [&](nanoseconds one) {
    if (one.count() != 0 && (first.count() == 0 || one < first)) first = one;
  };
  if (const auto found = new_digests_.find(path); found != new_digests_.end() && found->second.state.same_as(state)) {
    consider(found->second.first_seen);
  }
  const std::uint64_t hash = DigestSlot::hash_of(path);
  for (std::size_t table = 0; table < tables_.size(); ++table) {
    if (const DigestSlot* found = slot(table, hash, state)) consider(nanoseconds(found->first_seen_ns));
  }
  return first;
}

// Removes its path from `digesting_` when destroyed.
class FileDigestCache::InFlightDigest {
 public:
  InFlightDigest(FileDigestCache& digests, const std::string& path) : digests_(digests), path_(path) {}
  ~InFlightDigest() {
    const MutexLock lock(digests_.mutex_);
    digests_.digesting_.erase(path_);
    digests_.digest_finished_.notify_all();
  }
  InFlightDigest(const InFlightDigest&) = delete;
  InFlightDigest& operator=(const InFlightDigest&) = delete;

 private:
  FileDigestCache& digests_;
  const std::string& path_;
};

std::optional<FileDigestCache::FileDigest> FileDigestCache::lookup(const std::string& path,
                                                                   std::optional<nanoseconds> requested_at) {
  if (options_.always) return look_always(path, requested_at);
  std::optional<FileState> state;
  while (true) {
    state = mounts_.look(path.c_str());
    if (!state || state->stamp.size > kMaxBytes) return std::nullopt;
    const MutexLock lock(mutex_);
    if (const auto digest = remembered(path, *state)) return FileDigest{state->stamp, *digest};
    if (digesting_.insert(path).second) break;
    // The other thread's result may be newer than the state read above, or too recent to be cached.
    while (digesting_.contains(path)) clock_.wait(digest_finished_, mutex_, kPollInterval);
  }
  // Removes the path even if an allocation below throws: other threads wait for it.
  const InFlightDigest digesting(*this, path);
  std::optional<CrossProcessDigestLock> digest_lock;
  if (state->stamp.size >= kLarge && !cache_file_.empty()) {
    nanoseconds timeout{0};
    {
      const MutexLock lock(mutex_);
      timeout = lock_wait_left_;
    }
    digest_lock.emplace(path, clock_, timeout);
    if (digest_lock->waited().count() > 0) {
      {
        const MutexLock lock(mutex_);
        lock_wait_left_ = std::max(nanoseconds(0), lock_wait_left_ - digest_lock->waited());
      }
      if (const auto seen = computed_by_other_process(path, *state)) return seen;
    }
  }
  const std::optional<DigestResult> reading = read(path);
  if (!reading) return std::nullopt;
  store(path, *reading);
  // Before the lock is released, because the other processes wait for the saved digest.
  if (digest_lock) (void)save();
  return FileDigest{reading->state.stamp, reading->digest};
}

std::optional<FileDigestCache::FileDigest> FileDigestCache::look_always(const std::string& path,
                                                                        std::optional<nanoseconds> requested_at) {
  if (requested_at) {
    const nanoseconds now = clock_.steady();
    const MutexLock lock(mutex_);
    const auto found = new_digests_.find(path);
    if (found != new_digests_.end() && found->second.read_at >= *requested_at &&
        now - found->second.read_at <= kMaxReuseAge) {
      return FileDigest{found->second.state.stamp, found->second.digest};
    }
  }
  // Without waiting for another thread: a read that is already running may be older than this request.
  const std::optional<DigestResult> reading = read(path);
  const MutexLock lock(mutex_);
  new_digests_.erase(path);
  if (!reading) return std::nullopt;
  ++digested_;
  new_digests_.emplace(path, Known{reading->state, reading->digest, {}, reading->began});
  return FileDigest{reading->state.stamp, reading->digest};
}

std::optional<FileDigestCache::FileDigest> FileDigestCache::computed_by_other_process(const std::string& path,
                                                                                      const FileState& state) {
  reload();
  const MutexLock lock(mutex_);
  const auto digest = remembered(path, state);
  if (!digest) return std::nullopt;
  return FileDigest{state.stamp, *digest};
}

std::optional<FileState> FileDigestCache::stable_state(const std::string& path) {
  const auto state = options_.always ? std::nullopt : mounts_.look(path.c_str());
  if (!state || state->scope != FileState::Scope::Host || state->external_clock) return std::nullopt;
  if (state->stamp.is_newer_than(kMinStableAge, clock_.wall())) return std::nullopt;
  return state;
}

bool FileDigestCache::is_cached(const std::string& path, const FileState& state) {
  const MutexLock lock(mutex_);
  return remembered(path, state).has_value();
}

// A digest can be cached only if every write after the read gives the file another stamp.
//
// If this kernel sets the change time: a file whose times were two seconds old when it was read cannot be written to in
// the same tick any more, and a later write gets a later time.
//
// If a server sets the change time, its clock can be ahead of this host's clock or behind it. Let this host see the
// file with change time c at its time t, so that c was in the past at the server. A read that begins at t + 2 s or
// later can only miss writes that happen two seconds of the server's clock or more after c. Such a write gets a time
// later than c if the server's times are no coarser than two seconds. Only durations are compared, so the difference
// between the clocks does not matter.
void FileDigestCache::store(const std::string& path, const DigestResult& reading) {
  const MutexLock lock(mutex_);
  ++digested_;
  const FileState& state = reading.state;
  if (reading.changed || state.scope == FileState::Scope::Now || (!state.external_clock && reading.young)) {
    new_digests_.erase(path);
    return;
  }
  Known fresh{state, reading.digest, {}, reading.began};
  bool news = true;
  if (state.external_clock) {
    const nanoseconds first = first_seen(path, state);
    // The steady clock restarts at boot: a first-seen time in the future was recorded before the reboot.
    const bool seen_before = first.count() != 0 && first <= reading.began;
    if (!seen_before) fresh.first_seen = std::max(clock_.steady(), nanoseconds(1));
    if (seen_before && reading.began - first < kMinStableAge) {
      fresh.first_seen = first;
      news = false;
    }
  }
  new_digests_.insert_or_assign(path, fresh);
  unsaved_ = unsaved_ || (news && state.scope == FileState::Scope::Host);
}

std::optional<FileDigestCache::DigestResult> FileDigestCache::read(const std::string& path) {
  // Non-blocking: the file may have been replaced by a pipe since the check above.
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return std::nullopt;
  const std::optional<FileState> state = mounts_.look(fd.get());
  if (!state || state->stamp.size > kMaxBytes) return std::nullopt;
  DigestResult reading{*state, {}, clock_.steady()};
  // Checked before the read: a file that is written to during a long read has the times of its beginning.
  reading.young = state->stamp.is_newer_than(kMinStableAge, clock_.wall());
  const Result<Digest> digest = digest_of(fd.get(), state->stamp.size, path);
  if (!digest) return std::nullopt;
  reading.digest = *digest;
  const std::optional<FileState> after = mounts_.look(fd.get());
  reading.changed = !after || !after->same_as(*state);
  return reading;
}

Status FileDigestCache::save() {
  std::vector<DigestSlot> computed;
  bool large = false;
  {
    const MutexLock lock(mutex_);
    if (!unsaved_ || cache_file_.empty()) return {};
    unsaved_ = false;
    for (const auto& [path, one] : new_digests_) {
      if (one.state.scope != FileState::Scope::Host) continue;
      const bool stable = one.first_seen.count() == 0;
      computed.push_back({DigestSlot::hash_of(path), one.state.stamp, one.state.mount, one.first_seen.count(),
                          stable ? one.digest : Digest{}, 0});
      large = large || one.state.stamp.size >= kLarge;
    }
  }
  const std::string directory = cache_file_.substr(0, cache_file_.rfind('/'));
  const Result<Fd> place = open_trusted_directory(directory);
  Status saved =
      make_error(Code::Unavailable, directory + " does not exist yet");  // created with the first cache entry
  if (place && !is_network_filesystem(place->get()) && access(directory.c_str(), W_OK) == 0) {
    saved = DigestTable::save(cache_file_, std::move(computed));
  } else if (place || place.error().code != Code::Unavailable || large) {
    // A host that only reads entries of other hosts has no such directory, but its compiler is large all the same.
    const Result<std::string> local = host_local_directory();
    saved = local ? DigestTable::save(*local + "/digests", std::move(computed)) : Status(local.error());
  }
  if (!saved) {
    const MutexLock lock(mutex_);
    unsaved_ = true;
  }
  return saved;
}

void FileDigestCache::reload() {
  const MutexLock lock(mutex_);
  for (auto& table : tables_) table.reset();
}

std::size_t FileDigestCache::computed_count() const {
  const MutexLock lock(mutex_);
  return digested_;
}

}  // namespace kiln
