// SPDX-License-Identifier: Apache-2.0
#include "worker/worker_slots.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/files/files.hpp"
#include "base/process/system_info.hpp"

namespace kiln {
namespace {

using Attempt = LockFile::LockAttempt;

// The slots are the bytes from 0 on: the number of a general slot is its byte. The reserved slot and the extra slots
// follow the last possible byte of a general one.
constexpr off_t kSpecialSlots = off_t{1} << 33;

// Bytes from here on are slot requests: one each, the first free one at or above the process id. Requests therefore
// need no counter, and processes of two containers that share the directory and have the same id do not mistake each
// other's requests for their own. Urgent ones are in the upper half.
constexpr off_t kRequests = off_t{1} << 40;
constexpr off_t kRequestsLength = off_t{1} << 32;
constexpr off_t kUrgentRequests = kRequests + kRequestsLength / 2;
constexpr off_t kMaxTries = 1024;   // a process has few requests at a time; one above the limit is not announced, which
                                    // does no harm
constexpr int kMaxRequesters = 64;  // maximum number of requests to check; others count as stopped

// Bytes from here on publish workers: a range for each slot, in which the holder of the slot locks the byte with the
// number of its worker's process id. A lock, unlike written data, cannot be stale.
constexpr off_t kWorkers = off_t{1} << 50;
constexpr off_t kWorkersLength = off_t{1} << 32;

off_t byte_of(WorkerSlots::Index index) {
  return index < WorkerSlots::kReserved ? off_t{index} : kSpecialSlots + (index - WorkerSlots::kReserved);
}

// Bytes from here on are requests whose result a caller waits for: one each, by 59 bits of its digest. A collision only
// makes both urgent.
constexpr off_t kAwaited = off_t{1} << 60;

off_t awaited_byte(const Digest& request) { return kAwaited + (LockFile::lock_offset(request) >> 3); }

off_t workers_of(WorkerSlots::Index index) { return kWorkers + index * kWorkersLength; }

// Opened each time, which only checks the name if it is already open: the directory may have been cleaned, the host
// program may have closed unknown descriptors, and this process may be a forked child.
LockFile* slots_in(const std::string& directory) {
  std::string chosen = directory;
  if (chosen.empty()) {
    Result<std::string> local = host_local_directory();
    if (!local) return nullptr;
    chosen = std::move(*local);
  }
  const std::string path = join_path(chosen, "slots");
  Result<LockFile*> file = LockFile::open(path);
  if (!file && !exists(chosen) && make_directories(chosen)) file = LockFile::open(path);
  return file ? *file : nullptr;
}

}  // namespace

WorkerSlots::Slot::Slot(LockFile& file, Index index) : file_(&file), index_(index), slot_(file, byte_of(index)) {}

void WorkerSlots::Slot::show_worker(pid_t worker) {
  worker_ = {};
  if (file_ == nullptr || worker <= 0) return;
  const off_t byte = workers_of(index_) + worker;
  if (file_->try_lock(byte).result == Attempt::Result::Acquired) worker_ = LockFile::ScopedLock(*file_, byte);
}

std::optional<WorkerSlots::Slot> WorkerSlots::take(unsigned maximum) const {
  LockFile* const file = slots_in(directory_);
  for (Index slot = 0; slot < std::min(maximum, kReserved); ++slot) {
    if (file == nullptr) return Slot();
    const Attempt attempt = file->try_lock(byte_of(slot));
    if (attempt.result == Attempt::Result::Acquired) return Slot(*file, slot);
    if (attempt.result == Attempt::Result::Failed) return Slot();
  }
  return std::nullopt;
}

std::optional<WorkerSlots::Slot> WorkerSlots::take_reserved() const {
  LockFile* const file = slots_in(directory_);
  if (file == nullptr) return Slot();
  const Attempt attempt = file->try_lock(byte_of(kReserved));
  if (attempt.result == Attempt::Result::Acquired) return Slot(*file, kReserved);
  return attempt.result == Attempt::Result::Failed ? std::optional(Slot()) : std::nullopt;
}

std::optional<WorkerSlots::Slot> WorkerSlots::take_extra(Index number) const {
  LockFile* const file = slots_in(directory_);
  if (file == nullptr || number >= kMaxExtras) return std::nullopt;
  const Index index = kFirstExtra + number;
  return file->try_lock(byte_of(index)).result == Attempt::Result::Acquired ? std::optional(Slot(*file, index))
                                                                            : std::nullopt;
}

std::vector<WorkerSlots::Holder> WorkerSlots::holders(Index first, Index count) const {
  std::vector<Holder> found(count);
  const LockFile* const file = slots_in(directory_);
  for (Index i = 0; file != nullptr && i < count; ++i) {
    const off_t slot = byte_of(first + i);
    const off_t workers = workers_of(first + i);
    std::optional<off_t> worker;
    if (file->held_here(slot)) {
      found[i] = {true, getpid(), 0};
      worker = file->held_here(workers, kWorkersLength);
    } else if (const Attempt other = file->query_holder(slot); other.result == Attempt::Result::HeldByOtherProcess) {
      found[i] = {true, static_cast<pid_t>(other.holder), 0};
      const Attempt named = file->query_holder(workers, kWorkersLength);
      // A worker published by a process other than the slot's holder belongs to the previous or the next holder.
      if (named.result == Attempt::Result::HeldByOtherProcess && named.holder == other.holder) worker = named.byte;
    }
    if (worker && *worker > workers) found[i].worker = static_cast<pid_t>(*worker - workers);
  }
  return found;
}

WorkerSlots::SlotRequest WorkerSlots::announce_request(bool urgent) const {
  LockFile* const file = slots_in(directory_);
  const off_t first = (urgent ? kUrgentRequests : kRequests) + getpid();
  for (off_t byte = first; file != nullptr && byte < first + kMaxTries; ++byte) {
    const Attempt attempt = file->try_lock(byte);
    if (attempt.result == Attempt::Result::Acquired) return SlotRequest(*file, byte);
    if (attempt.result == Attempt::Result::Failed) break;
  }
  return {};
}

// Ignores requests of stopped processes: they cannot take a slot, and other processes would release one for nothing.
bool WorkerSlots::has_requests(off_t first, off_t length) const {
  const LockFile* const file = slots_in(directory_);
  const off_t end = first + length;
  for (int i = 0; file != nullptr && i < kMaxRequesters && first < end; ++i) {
    const Attempt found = file->query_holder(first, end - first);
    if (found.result != Attempt::Result::HeldByOtherProcess) return false;
    const auto requester = found.holder != 0 ? sample_process(static_cast<pid_t>(found.holder)) : std::nullopt;
    if (!requester || !requester->is_stopped()) return true;
    first = std::max(found.end, first + 1);  // a lock without an end covers the rest, and is not kiln's
  }
  return false;
}

bool WorkerSlots::has_other_waiters() const { return has_requests(kRequests, kRequestsLength); }

bool WorkerSlots::urgent_elsewhere() const { return has_requests(kUrgentRequests, kRequestsLength / 2); }

WorkerSlots::SlotRequest WorkerSlots::await(const Digest& request) const {
  LockFile* const file = slots_in(directory_);
  const off_t byte = awaited_byte(request);
  if (file == nullptr || file->try_lock(byte).result != Attempt::Result::Acquired) return {};
  return {*file, byte};
}

bool WorkerSlots::is_awaited(const Digest& request) const {
  const LockFile* const file = slots_in(directory_);
  const off_t byte = awaited_byte(request);
  return file != nullptr &&
         (file->held_here(byte) || file->query_holder(byte).result == Attempt::Result::HeldByOtherProcess);
}

unsigned workers_for_budget(const WorkerBudget& budget) {
  const std::uint64_t spare = budget.memory - std::min(budget.memory, budget.reserve_bytes);
  const std::uint64_t bear = budget.worker_bytes == 0 ? budget.cores : spare / budget.worker_bytes;
  return static_cast<unsigned>(std::max<std::uint64_t>(1, std::min<std::uint64_t>(budget.cores, bear)));
}

}  // namespace kiln
