// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/output/progress.hpp"

#include <chrono>
#include <system_error>
#include <utility>

#include "base/process/signals.hpp"

namespace kiln::cli {
namespace {

constexpr std::chrono::milliseconds kRedraw{125};

}  // namespace

Progress::Progress(Console& console, ProgressMeter::Options options) : console_(console), meter_(std::move(options)) {
  if (!console.live()) return;
  const ScopedSignalBlock blocked;  // Ctrl-C must be delivered to the working thread
  try {
    ticker_ = std::thread([this] { tick(); });
  } catch (const std::system_error&) {
    // The thread could not be started; progress is not shown.
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

void Progress::at(const std::string& what) {
  const MutexLock lock(mutex_);
  meter_.at(printable(what));
}

void Progress::tick() {
  for (;;) {
    std::string line;
    {
      const MutexLock lock(mutex_);
      if (over_) return;
      if (meter_.is_due()) line = meter_.line(console_.columns());
    }
    // Draw without the lock, so that a suspended terminal (Ctrl-S) blocks only this thread.
    if (!line.empty()) console_.draw(line);
    const MutexLock lock(mutex_);
    if (!over_) (void)ended_.wait_for(mutex_, kRedraw);
  }
}

}  // namespace kiln::cli
