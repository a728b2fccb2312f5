#pragma once

#include <atomic>

#include <kiln/result.hpp>

namespace kiln {

/// Somebody who must know when the process ends or was forked.
class ProcessListener {
 public:
  virtual ~ProcessListener() = default;
  /// The process is ending, and the libraries that kiln opened are still whole. May be called several times.
  virtual void at_exit() = 0;
  /// This is the child of a fork, with one thread: locks that others held stay locked, and what others did is theirs.
  virtual void in_child() = 0;
};

/// From here on it is told. Any thread.
void add_listener(ProcessListener& listener);
/// When this returns it is not told any more, and not being told.
void remove_listener(ProcessListener& listener);

/// To be called when a library was opened or has begun to work: exit handlers run in the reverse order of their
/// registration, and kiln must have stopped using a library before that library's own handlers run.
void stay_ahead_of_exit_handlers();
/// Whether listeners have been told of the end. Any thread.
bool process_is_ending();

/// How often this process has been forked away from the one that first asked. A child sees another number than its
/// parent, so that it knows what it has inherited. As cheap as a load.
unsigned fork_generation();

/// Remembers in which generation a vendor's library was opened. Any thread.
class OpenedOnce {
 public:
  /// Fine, unless the library was opened before this process was forked off: vendors' libraries lose their threads and
  /// keep their locks, and a call of one may never return.
  Status check(const char* library);

 private:
  std::atomic<unsigned> generation_{0};  // and one; zero: not yet
};

}  // namespace kiln
