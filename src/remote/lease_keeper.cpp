#include "remote/lease_keeper.hpp"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/guarded.hpp"
#include "base/signals.hpp"

namespace kiln {
namespace {

constexpr std::chrono::milliseconds kWithoutMemory{100};

}  // namespace

LeaseKeeper::~LeaseKeeper() {
  std::thread last;
  {
    const MutexLock lock(mutex_);
    rows_.clear();
    last.swap(thread_);
    changed_.notify_all();
  }
  if (last.joinable()) last.join();
}

std::uint64_t LeaseKeeper::keep(const Kept& kept) {
  const MutexLock lock(mutex_);
  const std::uint64_t number = ++numbers_;
  rows_.emplace(number, Row{kept, kept.since, kept.since + kept.lease / 3});
  start();
  changed_.notify_all();
  return number;
}

void LeaseKeeper::forget(std::uint64_t number) {
  const MutexLock lock(mutex_);
  rows_.erase(number);
  changed_.notify_all();
}

void LeaseKeeper::start() {
  if (running_) return;
  if (thread_.joinable()) thread_.join();  // it has left the lock for good, and ends
  const SignalsBlocked blocked;
  try {
    thread_ = std::thread([this] { run(); });
    running_ = true;
  } catch (const std::exception&) {
    // No thread is to be had: the lease lapses, which costs a compile. The next claim tries again.
  }
}

void LeaseKeeper::run() {
  pthread_setname_np(pthread_self(), "kiln-leases");
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (rows_.empty()) {
        running_ = false;
        return;
      }
    }
    if (guarded([this]() -> Status { return keep_one(); })) continue;
    // Out of memory: the leases lapse unless there is some again soon.
    const MutexLock lock(mutex_);
    clock_.wait(changed_, mutex_, kWithoutMemory);
  }
}

Status LeaseKeeper::keep_one() {
  std::uint64_t number = 0;
  Kept kept;
  {
    const MutexLock lock(mutex_);
    const auto first = std::min_element(rows_.begin(), rows_.end(),
                                        [](const auto& a, const auto& b) { return a.second.next < b.second.next; });
    if (first == rows_.end()) return {};
    if (const Time nap = first->second.next - clock_.steady(); nap > Time(0)) {
      clock_.wait(changed_, mutex_, nap);
      return {};
    }
    number = first->first;
    kept = first->second.kept;
  }
  renew(number, kept);
  return {};
}

// Not under the lock: whoever lets go does not wait for a server.
void LeaseKeeper::renew(std::uint64_t number, const Kept& kept) {
  const Time asked = clock_.steady();
  const bool too_long = asked - kept.since >= kept.most;
  const Answer answer = too_long ? Answer::Lost : kept.renew();
  std::string lost;
  {
    const MutexLock lock(mutex_);
    const auto row = rows_.find(number);
    if (row == rows_.end()) return;
    if (answer == Answer::Renewed) {
      row->second.renewed = asked;
      row->second.next = asked + kept.lease / 3;
    } else if (too_long) {
      lost = "it was held for as long as one may be: others may compile it now";
    } else if (answer == Answer::Lost) {
      lost = "it lapsed before it was renewed: another host may compile the same";
    } else if (clock_.steady() - row->second.renewed >= kept.lease) {
      lost = "its table could not be asked for as long as it lasts: another host may compile the same";
    } else {
      row->second.next = clock_.steady() + kept.lease / 10;  // the sooner it is back, the less is lost
    }
    if (!lost.empty()) rows_.erase(row);
  }
  if (!lost.empty()) kept.lost(lost);
}

}  // namespace kiln
