// SPDX-License-Identifier: Apache-2.0
#include "core/request_context.hpp"

#include "base/mutex.hpp"

namespace kiln {
namespace {

// Interval between two calls of an interrupt check.
constexpr std::chrono::nanoseconds kInterruptPollInterval = std::chrono::milliseconds(80);

}  // namespace

void RequestContext::sleep(const Clock& clock, std::chrono::nanoseconds time) const {
  if (interrupt() != nullptr) return clock.sleep(std::min(time, kInterruptPollInterval));
  if (!stop.stop_possible()) return clock.sleep(time);
  Mutex mutex;
  Condition stopped;
  const std::stop_callback wake(stop, [&] {
    const MutexLock lock(mutex);
    stopped.notify_all();
  });
  const MutexLock lock(mutex);
  if (!stop.stop_requested()) clock.wait(stopped, mutex, time);
}

}  // namespace kiln
