// SPDX-License-Identifier: Apache-2.0
#include "base/process/process_lifecycle.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"

namespace kiln {
namespace {

std::atomic<unsigned> forks{0};
std::atomic<bool> anyone_ever{false};  // a listener was added at least once
std::atomic<bool> ending{false};

// A running `at_exit` call, on the stack of the thread that makes it.
struct Telling {
  ProcessLifecycleListener* listener = nullptr;
  std::thread::id teller;
  Telling* outer = nullptr;
};

// Never destroyed, because it is used while the process ends.
struct Listeners {
  struct Entry {
    ProcessLifecycleListener* listener = nullptr;
    unsigned reported = 0;  // the last round in which `at_exit` was called
  };
  Mutex mutex;
  Condition reported;
  std::vector<Entry> all KILN_GUARDED_BY(mutex);
  unsigned rounds KILN_GUARDED_BY(mutex) = 0;
  Telling* telling KILN_GUARDED_BY(mutex) = nullptr;

  bool is_reported_by_another(const ProcessLifecycleListener& listener) const KILN_REQUIRES(mutex) {
    for (const Telling* one = telling; one != nullptr; one = one->outer) {
      if (one->listener == &listener && one->teller != std::this_thread::get_id()) return true;
    }
    return false;
  }
  // Starts the next call of this round; returns false if there is none.
  bool begin(Telling& one, unsigned round) {
    const MutexLock lock(mutex);
    const auto next = std::find_if(all.begin(), all.end(), [&](const Entry& entry) { return entry.reported != round; });
    if (next == all.end()) return false;
    next->reported = round;
    one = {next->listener, std::this_thread::get_id(), telling};
    telling = &one;
    return true;
  }
  void end(const Telling& one) {
    const MutexLock lock(mutex);
    Telling** link = &telling;
    while (*link != &one) link = &(*link)->outer;
    *link = one.outer;
    reported.notify_all();
  }
  unsigned next_round() {
    const MutexLock lock(mutex);
    return ++rounds;
  }
};

Listeners& listeners() {
  static Listeners& kept = *new Listeners;
  return kept;
}

void emit_exit() {
  ending.store(true, std::memory_order_release);
  Listeners& known = listeners();
  const unsigned round = known.next_round();
  // Without the lock: a listener waits for threads, and those threads may add or remove other listeners.
  for (Telling one; known.begin(one, round); known.end(one)) one.listener->at_exit();
}

// The analysis cannot see that the lock taken before a fork is released on both sides.
void before_fork() KILN_ANNOTATE(no_thread_safety_analysis) {
  listeners().mutex.lock();
  for (const Listeners::Entry& entry : listeners().all) entry.listener->before_fork();
}
void in_parent() KILN_ANNOTATE(no_thread_safety_analysis) {
  for (const Listeners::Entry& entry : listeners().all) entry.listener->in_parent();
  listeners().mutex.unlock();
}
void in_child() KILN_ANNOTATE(no_thread_safety_analysis) {
  forks.fetch_add(1, std::memory_order_acq_rel);
  for (const Listeners::Entry& entry : listeners().all) entry.listener->in_child();
  // The child must not stop the parent's sessions, and the thread that notified them does not exist here.
  listeners().all.clear();
  listeners().telling = nullptr;
  listeners().mutex.unlock();
}

bool watch_forks() { return pthread_atfork(before_fork, in_parent, in_child) == 0; }

// Compilers register exit handlers during their first compile, after ours. Thread-local objects are destroyed before
// all handlers when their thread calls exit, and the main thread nearly always ends by calling exit.
struct MainThreadEnd {
  bool watched = false;
  ~MainThreadEnd() {
    if (watched && syscall(SYS_gettid) == getpid()) emit_exit();
  }
};
thread_local MainThreadEnd main_thread_end;  // only the end of its thread destroys it

}  // namespace

unsigned fork_generation() {
  static const bool watching = watch_forks();
  (void)watching;
  return forks.load(std::memory_order_acquire);
}

Status ForkGuard::check(const char* library) {
  const unsigned now = fork_generation() + 1;
  unsigned before = 0;
  if (generation_.compare_exchange_strong(before, now) || before == now) return {};
  return make_error(Code::Unavailable,
                    std::string(library) +
                        " was opened before this process was forked and does not work in the child; fork "
                        "before the first use, or start a new program");
}

void add_process_listener(ProcessLifecycleListener& listener) {
  (void)fork_generation();
  main_thread_end.watched = true;
  {
    Listeners& known = listeners();
    const MutexLock lock(known.mutex);
    known.all.push_back({&listener});
  }
  // Registered once here; libraries that are opened later register it again.
  if (!anyone_ever.exchange(true, std::memory_order_acq_rel)) reregister_exit_handler();
}

void remove_process_listener(ProcessLifecycleListener& listener) {
  Listeners& known = listeners();
  const MutexLock lock(known.mutex);
  std::erase_if(known.all, [&](const Listeners::Entry& entry) { return entry.listener == &listener; });
  while (known.is_reported_by_another(listener)) (void)known.reported.wait_for(known.mutex, std::chrono::seconds(1));
}

bool process_is_ending() { return ending.load(std::memory_order_acquire); }

void reregister_exit_handler() {
  if (anyone_ever.load(std::memory_order_acquire)) (void)std::atexit(emit_exit);
}

}  // namespace kiln
