#include "apps/kiln/progress.hpp"

#include <chrono>
#include <system_error>
#include <utility>

#include "base/signals.hpp"

namespace kiln::cli {
namespace {

constexpr std::chrono::milliseconds kRedraw{125};

}  // namespace

Progress::Progress(Console& console, ProgressMeter::Options options) : console_(console), meter_(std::move(options)) {
  if (!console.live()) return;
  const SignalsBlocked blocked;  // Ctrl-C is for the thread that works
  try {
    ticker_ = std::thread([this] { tick(); });
  } catch (const std::system_error&) {
    // Then nobody sees how far it is.
  }
}

Progress::~Progress() {
  if (!ticker_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    over_ = true;
    ended_.notify_all();
  }
  ticker_.join();
  console_.draw({});
}

void Progress::step(double cost) {
  const MutexLock lock(mutex_);
  meter_.step(cost);
}

void Progress::set(std::size_t done, std::size_t all) {
  const MutexLock lock(mutex_);
  meter_.set(done, all);
}

void Progress::at(std::string what) {
  const MutexLock lock(mutex_);
  meter_.at(printable(std::move(what)));
}

void Progress::tick() {
  for (;;) {
    std::string line;
    {
      const MutexLock lock(mutex_);
      if (over_) return;
      if (meter_.is_due()) line = meter_.line(console_.columns());
    }
    // Off the lock: a terminal that was told to hold on holds on to nothing but this.
    if (!line.empty()) console_.draw(line);
    const MutexLock lock(mutex_);
    if (!over_) (void)ended_.wait_for(mutex_, kRedraw);
  }
}

}  // namespace kiln::cli
