// SPDX-License-Identifier: Apache-2.0
#include "remote/lease_renewer.hpp"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/catch_to_error.hpp"
#include "base/process/signals.hpp"

namespace kiln {
namespace {

constexpr std::chrono::milliseconds kWithoutMemory{100};

}  // namespace

LeaseRenewer::~LeaseRenewer() {
  std::thread last;
  {
    const MutexLock lock(mutex_);
    rows_.clear();
    last.swap(thread_);
    changed_.notify_all();
  }
  if (last.joinable()) last.join();
}

std::uint64_t LeaseRenewer::add(const Renewal& kept) {
  const MutexLock lock(mutex_);
  const std::uint64_t number = ++numbers_;
  rows_.emplace(number, ScheduledRenewal{kept, kept.since, kept.since + kept.lease / 3});
  start();
  changed_.notify_all();
  return number;
}

void LeaseRenewer::forget(std::uint64_t number) {
  const MutexLock lock(mutex_);
  rows_.erase(number);
  changed_.notify_all();
}

void LeaseRenewer::start() {
  if (running_) return;
  if (thread_.joinable()) thread_.join();  // it no longer takes the lock and is about to end
  const ScopedSignalBlock blocked;
  try {
    thread_ = std::thread([this] { run(); });
    running_ = true;
  } catch (const std::exception&) {
    // No thread could be created. The lease expires, which costs a duplicate compile. The next claim tries again.
  }
}

void LeaseRenewer::run() {
  pthread_setname_np(pthread_self(), "kiln-leases");
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (rows_.empty()) {
        running_ = false;
        return;
      }
    }
    if (catch_to_error([this]() -> Status { return renew_next(); })) continue;
    // Out of memory: the leases expire unless memory becomes available soon.
    const MutexLock lock(mutex_);
    clock_.wait(changed_, mutex_, kWithoutMemory);
  }
}

Status LeaseRenewer::renew_next() {
  std::uint64_t number = 0;
  Renewal kept;
  {
    const MutexLock lock(mutex_);
    const auto first = std::min_element(rows_.begin(), rows_.end(),
                                        [](const auto& a, const auto& b) { return a.second.next < b.second.next; });
    if (first == rows_.end()) return {};
    if (const Time interval = first->second.next - clock_.steady(); interval > Time(0)) {
      clock_.wait(changed_, mutex_, interval);
      return {};
    }
    number = first->first;
    kept = first->second.kept;
  }
  renew(number, kept);
  return {};
}

// Renews without the lock, so that `forget` does not wait for a server.
void LeaseRenewer::renew(std::uint64_t number, const Renewal& kept) {
  const Time asked = clock_.steady();
  const bool too_long = asked - kept.since >= kept.maximum;
  const RenewResult answer = too_long ? RenewResult::Lost : kept.renew();
  std::string lost;
  {
    const MutexLock lock(mutex_);
    const auto row = rows_.find(number);
    if (row == rows_.end()) return;
    if (answer == RenewResult::Renewed) {
      row->second.renewed = asked;
      row->second.next = asked + kept.lease / 3;
    } else if (too_long) {
      lost = "the lease reached its maximum hold time: other hosts may compile it now";
    } else if (answer == RenewResult::Lost) {
      lost = "the lease expired before it was renewed: another host may compile it too";
    } else if (clock_.steady() - row->second.renewed >= kept.lease) {
      lost = "the lease table was unreachable for the lease time: another host may compile it too";
    } else {
      row->second.next =
          clock_.steady() + kept.lease / 10;  // retry soon, to renew as early as possible after an outage
    }
    if (!lost.empty()) rows_.erase(row);
  }
  if (!lost.empty()) kept.lost(lost);
}

}  // namespace kiln
