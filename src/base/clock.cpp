// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"

#include <time.h>

#include <algorithm>
#include <ctime>
#include <thread>

namespace kiln {
namespace {

std::chrono::nanoseconds read(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

class SystemClock final : public Clock {
 public:
  // The kernel takes file times from its coarse clock. That clock lags behind the exact clock by a tick, or by a third
  // of a second (measured) if a host stops the CPU that updates it. By the exact clock, a file that changes now would
  // look old.
  std::chrono::nanoseconds wall() const override { return read(CLOCK_REALTIME_COARSE); }
  std::chrono::nanoseconds steady() const override { return read(CLOCK_MONOTONIC); }
  void sleep(std::chrono::nanoseconds time) const override { std::this_thread::sleep_for(time); }
};

// Maximum of one wait. An infinite wait would overflow its end time; callers wait in a loop.
constexpr std::chrono::nanoseconds kMaxWait = std::chrono::hours(1);

// Interval between two interrupt checks, short enough that a user who presses Ctrl-C does not notice it.
constexpr std::chrono::nanoseconds kInterruptPollInterval = std::chrono::milliseconds(40);

}  // namespace

void Clock::wait(Condition& condition, Mutex& mutex, std::chrono::nanoseconds time) const {
  (void)condition.wait_for(mutex, std::min(time, kMaxWait));
}

void Clock::wait_until(Condition& condition, Mutex& mutex, const Deadline& deadline) const {
  InterruptCheck* const interrupt = deadline.interrupt();
  const auto time = deadline.remaining();
  if (interrupt == nullptr || time <= kInterruptPollInterval) return wait(condition, mutex, time);
  const auto start = steady();
  wait(condition, mutex, kInterruptPollInterval);
  if (steady() - start < kInterruptPollInterval) return;  // notified
  mutex.unlock();
  (void)interrupt->poll();
  mutex.lock();
}

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

std::string format_utc(std::chrono::nanoseconds wall) {
  const std::time_t seconds = std::chrono::duration_cast<std::chrono::seconds>(wall).count();
  std::tm parts{};
  char text[32] = {};
  if (gmtime_r(&seconds, &parts) == nullptr || std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) {
    return {};
  }
  return text;
}

double milliseconds_since(const Clock& clock, std::chrono::nanoseconds start) {
  return std::chrono::duration<double, std::milli>(clock.steady() - start).count();
}

}  // namespace kiln
