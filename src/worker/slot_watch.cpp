// SPDX-License-Identifier: Apache-2.0
#include "worker/slot_watch.hpp"

#include <algorithm>

namespace kiln {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds kPeriod{250};
// Observations from before a longer pause are discarded: the worker may have been idle in between.
constexpr milliseconds kMaxPause{5'000};
constexpr milliseconds kTimeWithoutCpu{2'000};
constexpr milliseconds kTimeOfUnknown{10'000};
constexpr int kLooksStopped = 2;  // a traced process is briefly stopped at each system call
constexpr WorkerSlots::Index kMaxWatched = 256;

}  // namespace

SlotWatch::Verdict SlotWatch::look(unsigned maximum, bool urgent, nanoseconds now) {
  const Index general = std::min<Index>(maximum, kMaxWatched);
  if (!looked_ || now - *looked_ >= kPeriod) refresh(general, now);
  Index stuck = 0;
  for (Index index = 0; index < general; ++index) {
    if (!is_held(index)) return {};
    stuck += is_stuck(index) ? 1 : 0;
  }
  Verdict verdict;
  verdict.all_stuck = stuck == general;
  if (urgent && !is_held(WorkerSlots::kReserved)) return verdict;
  if (urgent && is_stuck(WorkerSlots::kReserved)) ++stuck;
  if (stuck == 0) return verdict;
  Index number = 0;
  while (number < WorkerSlots::kMaxExtras && is_stuck(WorkerSlots::kFirstExtra + number)) ++number;
  verdict.extra = number;
  return verdict;
}

void SlotWatch::refresh(Index general, nanoseconds now) {
  if (!looked_ || now - *looked_ > kMaxPause) {
    seen_.clear();
    changed_ = now;
  }
  looked_ = now;
  update(0, slots_.holders(0, general), now);
  update(WorkerSlots::kReserved, slots_.holders(WorkerSlots::kReserved, 1 + WorkerSlots::kMaxExtras), now);
}

void SlotWatch::update(Index first, const std::vector<Holder>& holders, nanoseconds now) {
  for (std::size_t i = 0; i < holders.size(); ++i) update(seen_[first + static_cast<Index>(i)], holders[i], now);
}

void SlotWatch::update(Seen& seen, const Holder& holder, nanoseconds now) {
  if (holder != seen.holder) {
    seen = {holder, std::nullopt, now, 0};
    changed_ = now;
  }
  if (!holder.is_held) return;
  const auto process = holder.process != 0 ? sample_process(holder.process, files_) : std::nullopt;
  seen.looks_stopped = process && process->is_stopped() ? seen.looks_stopped + 1 : 0;
  auto worker = holder.worker != 0 ? sample_process(holder.worker, files_) : std::nullopt;
  // The process id is one of the holder's pid namespace, which can differ from ours.
  if (worker && worker->parent != holder.process) worker.reset();
  const auto cpu_time = worker ? std::optional(worker->cpu_time) : std::nullopt;
  // A worker that is runnable but gets no core is slow, not stuck.
  if (cpu_time != seen.cpu_time || (worker && worker->state == 'R')) {
    seen.cpu_time = cpu_time;
    seen.since = now;
    changed_ = now;
  }
}

bool SlotWatch::is_held(Index index) const {
  const auto found = seen_.find(index);
  return found != seen_.end() && found->second.holder.is_held;
}

bool SlotWatch::is_stuck(Index index) const {
  const auto found = seen_.find(index);
  if (found == seen_.end() || !found->second.holder.is_held) return false;
  const Seen& seen = found->second;
  if (seen.looks_stopped >= kLooksStopped) return true;
  return seen.cpu_time ? *looked_ - seen.since >= kTimeWithoutCpu : *looked_ - changed_ >= kTimeOfUnknown;
}

}  // namespace kiln
