#include "compile/worker_slots.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/files.hpp"

namespace kiln {
namespace {

using Attempt = LockFile::Attempt;

// Bytes from here on are wishes: one each, the first free one from the process id on. So wishes need no counting, and
// processes of two containers that share the folder and happen to have the same id do not take each other's for theirs.
constexpr off_t kWishes = off_t{1} << 40;
constexpr off_t kWishesLength = off_t{1} << 32;
constexpr off_t kMostTries = 1024;  // a process has few wishes at a time; one too many is not heard, and no worse

// Opened anew each time, which is a look at the name where it is open already: the folder may have been swept, the host
// program may have closed descriptors that it does not know, and this may be a child of fork by now.
LockFile* slots_in(const std::string& folder) {
  std::string place = folder;
  if (place.empty()) {
    Result<std::string> local = host_local_directory();
    if (!local) return nullptr;
    place = std::move(*local);
  }
  const std::string path = join_path(place, "slots");
  Result<LockFile*> file = LockFile::open(path);
  if (!file && !exists(place) && make_directories(place)) file = LockFile::open(path);
  return file ? *file : nullptr;
}

}  // namespace

std::optional<WorkerSlots::Slot> WorkerSlots::take(unsigned most) const {
  LockFile* const file = slots_in(folder_);
  for (unsigned slot = 0; slot < most; ++slot) {
    if (file == nullptr) return Slot();
    const Attempt attempt = file->take(off_t{slot});
    if (attempt.result == Attempt::Result::Taken) return Slot(*file, off_t{slot});
    if (attempt.result == Attempt::Result::Failed) return Slot();
  }
  return std::nullopt;
}

WorkerSlots::Wish WorkerSlots::wish() const {
  LockFile* const file = slots_in(folder_);
  const off_t first = kWishes + getpid();
  for (off_t byte = first; file != nullptr && byte < first + kMostTries; ++byte) {
    const Attempt attempt = file->take(byte);
    if (attempt.result == Attempt::Result::Taken) return Wish(*file, byte);
    if (attempt.result == Attempt::Result::Failed) break;
  }
  return {};
}

bool WorkerSlots::wanted_elsewhere() const {
  const LockFile* const file = slots_in(folder_);
  return file != nullptr && file->look(kWishes, kWishesLength).result == Attempt::Result::HeldElsewhere;
}

unsigned workers_within(const WorkerBudget& budget) {
  const std::uint64_t spare = budget.memory - std::min(budget.memory, budget.reserve_bytes);
  const std::uint64_t bear = budget.worker_bytes == 0 ? budget.cores : spare / budget.worker_bytes;
  return static_cast<unsigned>(std::max<std::uint64_t>(1, std::min<std::uint64_t>(budget.cores, bear)));
}

}  // namespace kiln
