#include "base/process_life.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"

namespace kiln {
namespace {

std::atomic<unsigned> forks{0};
std::atomic<bool> anyone_ever{false};  // has listened
std::atomic<bool> ending{false};

// Never destroyed: it is asked while the process ends.
struct Listeners {
  Mutex mutex;
  std::vector<ProcessListener*> all KILN_GUARDED_BY(mutex);
};

Listeners& listeners() {
  static Listeners& kept = *new Listeners;
  return kept;
}

void tell_of_exit() {
  ending.store(true, std::memory_order_release);
  Listeners& known = listeners();
  const MutexLock lock(known.mutex);
  for (ProcessListener* listener : known.all) listener->at_exit();
}

// The analysis cannot see that the lock taken before a fork is given back on both sides of it.
void before_fork() KILN_ANNOTATE(no_thread_safety_analysis) { listeners().mutex.lock(); }
void in_parent() KILN_ANNOTATE(no_thread_safety_analysis) { listeners().mutex.unlock(); }
void in_child() KILN_ANNOTATE(no_thread_safety_analysis) {
  forks.fetch_add(1, std::memory_order_acq_rel);
  for (ProcessListener* listener : listeners().all) listener->in_child();
  // What the parent's sessions do is not this process's to end.
  listeners().all.clear();
  listeners().mutex.unlock();
}

bool watch_forks() { return pthread_atfork(before_fork, in_parent, in_child) == 0; }

// Compilers register exit handlers in the middle of their first compile, behind ours. What belongs to a thread goes
// before all handlers when that thread calls exit, and the main thread, which nearly always does, ends in no other way.
struct MainThreadEnd {
  bool watched = false;
  ~MainThreadEnd() {
    if (watched && gettid() == getpid()) tell_of_exit();
  }
};
thread_local MainThreadEnd main_thread_end;

}  // namespace

unsigned fork_generation() {
  static const bool watching = watch_forks();
  (void)watching;
  return forks.load(std::memory_order_acquire);
}

Status OpenedOnce::check(const char* library) {
  const unsigned now = fork_generation() + 1;
  unsigned before = 0;
  if (generation_.compare_exchange_strong(before, now) || before == now) return {};
  return failure(Code::Unavailable, std::string(library) +
                                        " was opened before this process was forked, and does not survive that: fork "
                                        "before the first use, or start a new program");
}

void add_listener(ProcessListener& listener) {
  (void)fork_generation();
  main_thread_end.watched = true;
  {
    Listeners& known = listeners();
    const MutexLock lock(known.mutex);
    known.all.push_back(&listener);
  }
  // Once: whatever is opened later registers it again.
  if (!anyone_ever.exchange(true, std::memory_order_acq_rel)) stay_ahead_of_exit_handlers();
}

void remove_listener(ProcessListener& listener) {
  Listeners& known = listeners();
  const MutexLock lock(known.mutex);
  std::erase(known.all, &listener);
}

bool process_is_ending() { return ending.load(std::memory_order_acquire); }

void stay_ahead_of_exit_handlers() {
  // No lock: a thread that opens a library while the process ends is waited for under it.
  if (anyone_ever.load(std::memory_order_acquire)) (void)std::atexit(tell_of_exit);
}

}  // namespace kiln
