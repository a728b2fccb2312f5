#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/mutex.hpp"
#include "session/config.hpp"
#include "session/status_format.hpp"
#include "warm/pool.hpp"

namespace kiln {

/// Keeps a file from which others read how far this process is: written a moment after work has begun in the
/// background, five times a second while some is pending, once more when none is, and removed at the end. A process
/// whose requests were all answered at once writes nothing. Any thread.
class StatusBoard {
 public:
  struct Parts {
    /// How far it is; called on the board's thread.
    std::function<Glance(std::size_t most)> look;
    /// Called where the folder cannot be used, once.
    std::function<void(const Error&)> complain;
    const Clock* clock = &system_clock();
  };
  explicit StatusBoard(Parts parts);
  ~StatusBoard();
  StatusBoard(const StatusBoard&) = delete;
  StatusBoard& operator=(const StatusBoard&) = delete;

  /// Work has begun. For the threads that do it: a load where the board knows already.
  void touch(const Config& config);
  /// Nothing is written any more, and the file is gone.
  void stop();

 private:
  void work();
  bool wait();
  Status prepare() KILN_REQUIRES(mutex_);
  Status publish(Glance glance);

  const Parts parts_;
  std::atomic<bool> knows_{false};  // that there is something to write, or that nothing is ever to be
  Mutex mutex_;
  Condition stopping_;
  bool stopped_ KILN_GUARDED_BY(mutex_) = false;
  std::string folder_ KILN_GUARDED_BY(mutex_);
  std::optional<Fd> directory_ KILN_GUARDED_BY(mutex_);
  ProcessStatus status_ KILN_GUARDED_BY(mutex_);
  const std::string name_;  // of the file
  Pool pool_;               // last, so that its thread ends before what it uses
};

}  // namespace kiln
