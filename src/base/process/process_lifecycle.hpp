// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include <kiln/result.hpp>

namespace kiln {

/// An object that is notified when the process exits or forks.
class ProcessLifecycleListener {
 public:
  virtual ~ProcessLifecycleListener() = default;
  /// Called when the process is exiting; the libraries that kiln opened still work. Can be called several times.
  virtual void at_exit() = 0;
  /// Called in the thread that is about to fork. Takes the locks that `in_child` needs, which no thread may hold while
  /// it calls `add_process_listener` or `remove_process_listener`. `in_parent` or `in_child` releases them.
  virtual void before_fork() {}
  virtual void in_parent() {}
  /// Called in the child of a fork, which has one thread. Locks that other threads held stay locked, and their work
  /// belongs to the parent.
  virtual void in_child() = 0;
};

/// Registers a listener. Thread-safe.
void add_process_listener(ProcessLifecycleListener& listener);
/// Unregisters a listener and waits for a running `at_exit` call of it on another thread. A thread that this `at_exit`
/// call waits for must therefore not remove the listener. Does not wait for other listeners.
void remove_process_listener(ProcessLifecycleListener& listener);

/// Registers kiln's exit handler again. Call it after opening or first using a library: exit handlers run in reverse
/// order of registration, and kiln must stop using a library before the library's own handlers run.
void reregister_exit_handler();
/// Returns whether listeners have been notified of the exit. Thread-safe.
bool process_is_ending();

/// Returns the number of forks between this process and the first process that called it. A child sees another number
/// than its parent and so detects inherited state. Costs one atomic load.
unsigned fork_generation();

/// Records in which process generation a vendor library was opened. Thread-safe.
class ForkGuard {
 public:
  /// Returns an error if the library was opened before this process was forked: vendor libraries lose their threads and
  /// keep their locks, and a call may never return.
  Status check(const char* library);

 private:
  std::atomic<unsigned> generation_{0};  // generation plus one; 0 means not opened
};

}  // namespace kiln
