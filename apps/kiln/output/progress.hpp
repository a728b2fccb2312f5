// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <thread>

#include "apps/kiln/output/console.hpp"
#include "apps/kiln/output/progress_meter.hpp"
#include "base/mutex.hpp"
#include "base/progress_callback.hpp"

namespace kiln::cli {

/// A progress line on a terminal. It appears after half a second and is removed at the end. In a pipe, with --quiet and
/// with --json nothing is shown. Thread-safe.
class Progress {
 public:
  Progress(Console& console, ProgressMeter::Options options);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(double cost = 0);
  void set(std::size_t done, std::size_t all);
  void at(const std::string& what);
  /// Returns a callback for functions that report their progress. The callback must not outlive this object.
  ProgressCallback advance() {
    return [this](std::size_t done, std::size_t all) { set(done, all); };
  }

 private:
  void tick();

  Console& console_;
  Mutex mutex_;
  Condition ended_;
  ProgressMeter meter_ KILN_GUARDED_BY(mutex_);
  bool over_ KILN_GUARDED_BY(mutex_) = false;
  std::thread ticker_;  // not started if nothing is shown
};

}  // namespace kiln::cli
