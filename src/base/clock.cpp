#include "base/clock.hpp"

#include <time.h>

#include <algorithm>
#include <ctime>
#include <thread>
#include <utility>

namespace kiln {
namespace {

std::chrono::nanoseconds read(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

class SystemClock final : public Clock {
 public:
  // Files have their times from the kernel's coarse clock, which lags behind the exact one by a tick, and by a third of
  // a second (measured) where a host stops the processor that keeps it: by the exact one, what changes now is old.
  std::chrono::nanoseconds wall() const override { return read(CLOCK_REALTIME_COARSE); }
  std::chrono::nanoseconds steady() const override { return read(CLOCK_MONOTONIC); }
  void sleep(std::chrono::nanoseconds time) const override { std::this_thread::sleep_for(time); }
};

// A wait for ever would overflow the time at which it ends; whoever waits looks again now and then.
constexpr std::chrono::nanoseconds kLongestWait = std::chrono::hours(1);

// How long a thread that has to see to something else goes without: a person who presses Ctrl-C must not notice.
constexpr std::chrono::nanoseconds kLongestInattention = std::chrono::milliseconds(40);
thread_local Attention* attention = nullptr;

}  // namespace

void Clock::wait(Condition& condition, Mutex& mutex, std::chrono::nanoseconds time) const {
  if (attention == nullptr) {
    (void)condition.wait_for(mutex, std::min(time, kLongestWait));
    return;
  }
  if (condition.wait_for(mutex, std::min(time, kLongestInattention)) || time <= kLongestInattention) return;
  mutex.unlock();
  attention->over_ = attention->over_ || !attention->goes_on_();
  mutex.lock();
}

Attention::Attention(std::function<bool()> goes_on)
    : goes_on_(std::move(goes_on)), outer_(std::exchange(attention, this)) {}
Attention::~Attention() { attention = outer_; }

bool Attention::is_over() { return attention != nullptr && attention->over_; }

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

std::string utc_text(std::chrono::nanoseconds wall) {
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
