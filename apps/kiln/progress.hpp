#pragma once

#include <cstddef>
#include <string>
#include <thread>

#include "apps/kiln/console.hpp"
#include "apps/kiln/progress_meter.hpp"
#include "base/advance.hpp"
#include "base/mutex.hpp"

namespace kiln::cli {

/// Shows on a terminal how far something is, from the moment on that it takes longer than half a second, and takes the
/// line away when it is over. In a pipe, with --quiet and with --json it does nothing at all. Any thread.
class Progress {
 public:
  Progress(Console& console, ProgressMeter::Options options);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(double cost = 0);
  void set(std::size_t done, std::size_t all);
  void at(std::string what);
  /// For those who tell how far they are. It must not outlive this.
  Advance advance() {
    return [this](std::size_t done, std::size_t all) { set(done, all); };
  }

 private:
  void tick();

  Console& console_;
  Mutex mutex_;
  Condition ended_;
  ProgressMeter meter_ KILN_GUARDED_BY(mutex_);
  bool over_ KILN_GUARDED_BY(mutex_) = false;
  std::thread ticker_;  // none where nobody looks
};

}  // namespace kiln::cli
