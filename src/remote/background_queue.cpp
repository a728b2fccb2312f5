// SPDX-License-Identifier: Apache-2.0
#include "remote/background_queue.hpp"

#include <pthread.h>

#include <atomic>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/catch_to_error.hpp"
#include "base/mutex.hpp"
#include "base/process/signals.hpp"

namespace kiln {
namespace {

using Time = std::chrono::nanoseconds;

// Wakeup interval of an idle thread. A safeguard only: every change notifies the thread.
constexpr std::chrono::minutes kPollInterval{1};

}  // namespace

class BackgroundQueue::State : public std::enable_shared_from_this<State> {
 public:
  State(const FleetPolicy& policy, const Clock& clock) : policy_(policy), clock_(clock) {}

  bool is_stopping() const { return ending_.load(std::memory_order_acquire); }

  struct Task {
    std::uint64_t bytes = 0;
    bool counted = false;            // counts against the limits of the queue
    bool timed = false;              // scheduled for a later time; `drain` does not wait for it
    std::function<void()> run = {};  // the queue does not know what it sends
  };

  bool send(Task task) {
    const MutexLock lock(mutex_);
    if (stopped_) return false;
    if (task.counted && !fits(task)) return false;
    if (!start() && task.counted) return false;
    queue_.push_back(std::move(task));
    const Task& sent = queue_.back();
    if (sent.counted) {
      ++waiting_;
      bytes_ += sent.bytes;
    }
    ++sent_;
    changed_.notify_all();
    return true;
  }

  void enqueue_at(Time when, std::function<void()> run) {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    (void)start();
    later_.emplace(when, std::move(run));
    changed_.notify_all();
  }

  bool drain(Time timeout) {
    const Deadline deadline(clock_, timeout);
    const MutexLock lock(mutex_);
    const std::uint64_t all = sent_;
    while (done_ < all) {
      const Time remaining = deadline.remaining();
      if (remaining <= Time(0) || stopped_ || !thread_.joinable()) return false;
      clock_.wait(changed_, mutex_, remaining);
    }
    return true;
  }

  void stop() {
    (void)drain(policy_.drain_timeout);
    std::list<Task> forgotten;  // destroyed after the lock is released
    std::multimap<Time, std::function<void()>> forgotten_later;
    std::thread thread;
    {
      const MutexLock lock(mutex_);
      stopped_ = true;
      ending_.store(true, std::memory_order_release);
      forgotten.swap(queue_);
      forgotten_later.swap(later_);
      thread.swap(thread_);
      changed_.notify_all();
    }
    if (thread.joinable()) thread.join();
    // Another thread may be in `stop` too and own the thread object.
    const MutexLock lock(mutex_);
    while (alive_) clock_.wait(changed_, mutex_, kPollInterval);
  }

  /// Detaches the thread if the caller runs on it. This happens if a task holds the last reference to the queue; the
  /// thread then ends by itself.
  bool detach_if_own_thread() {
    const MutexLock lock(mutex_);
    if (!thread_.joinable() || thread_.get_id() != std::this_thread::get_id()) return false;
    stopped_ = true;
    thread_.detach();
    return true;
  }

 private:
  bool fits(const Task& task) const KILN_REQUIRES(mutex_) {
    return waiting_ < policy_.max_pending_uploads && task.bytes <= policy_.max_pending_upload_bytes &&
           bytes_ <= policy_.max_pending_upload_bytes - task.bytes;
  }

  // Returns false if no thread could be created. The next task tries again.
  bool start() KILN_REQUIRES(mutex_) {
    if (thread_.joinable()) return true;
    const ScopedSignalBlock blocked;
    try {
      thread_ = std::thread([self = shared_from_this()] { self->run(); });
    } catch (const std::exception&) {
      return false;
    }
    alive_ = true;
    return true;
  }

  void run() {
    pthread_setname_np(pthread_self(), "kiln-background");
    while (std::optional<Task> task = next()) {
      ignore_failures(task->run);  // on out of memory the task is abandoned and the process continues
      task->run = nullptr;         // release what the task holds before it counts as done
      finish(*task);
    }
    const MutexLock lock(mutex_);
    alive_ = false;
    changed_.notify_all();
  }

  // Returns the next task, or nothing if the queue has stopped.
  std::optional<Task> next() {
    const MutexLock lock(mutex_);
    for (;;) {
      if (stopped_) return std::nullopt;
      const Time now = clock_.steady();
      if (!later_.empty() && later_.begin()->first <= now) {
        return Task{0, false, true, std::move(later_.extract(later_.begin()).mapped())};
      }
      if (!queue_.empty()) {
        Task task = std::move(queue_.front());
        queue_.pop_front();
        return task;
      }
      clock_.wait(changed_, mutex_, later_.empty() ? Time(kPollInterval) : later_.begin()->first - now);
    }
  }

  void finish(const Task& task) {
    const MutexLock lock(mutex_);
    if (!task.timed) ++done_;
    if (task.counted) {
      --waiting_;
      bytes_ -= task.bytes;
    }
    changed_.notify_all();
  }

  const FleetPolicy policy_;
  const Clock& clock_;
  std::atomic<bool> ending_{false};
  Mutex mutex_;
  Condition changed_;
  std::list<Task> queue_ KILN_GUARDED_BY(mutex_);
  std::multimap<Time, std::function<void()>> later_ KILN_GUARDED_BY(mutex_);  // tasks by the time when they are due
  std::size_t waiting_ KILN_GUARDED_BY(mutex_) = 0;  // counted tasks, including the running one
  std::uint64_t bytes_ KILN_GUARDED_BY(mutex_) = 0;  // bytes of the counted tasks
  std::uint64_t sent_ KILN_GUARDED_BY(mutex_) = 0;
  std::uint64_t done_ KILN_GUARDED_BY(mutex_) = 0;
  bool stopped_ KILN_GUARDED_BY(mutex_) = false;
  bool alive_ KILN_GUARDED_BY(mutex_) = false;
  std::thread thread_ KILN_GUARDED_BY(mutex_);
};

/// Owner of the state and its thread. The thread holds a reference to the state too.
struct BackgroundQueue::ThreadOwner {
  ThreadOwner(const FleetPolicy& policy, const Clock& clock) : state(std::make_shared<State>(policy, clock)) {}
  ~ThreadOwner() {
    if (!state->detach_if_own_thread()) state->stop();
  }
  ThreadOwner(const ThreadOwner&) = delete;
  ThreadOwner& operator=(const ThreadOwner&) = delete;

  const std::shared_ptr<State> state;
};

BackgroundQueue::BackgroundQueue(const FleetPolicy& policy, const Clock& clock) : policy_(policy), clock_(clock) {
  (void)state();  // allocate now, so that the destructor needs no memory
}
BackgroundQueue::~BackgroundQueue() = default;

BackgroundQueue::State& BackgroundQueue::state() const { return *hold_.get(policy_, clock_).state; }

bool BackgroundQueue::try_enqueue(std::uint64_t bytes, std::function<void()> task) {
  return state().send({bytes, true, false, std::move(task)});
}

void BackgroundQueue::enqueue(std::function<void()> task) { (void)state().send({0, false, false, std::move(task)}); }

void BackgroundQueue::enqueue_at(std::chrono::nanoseconds when, std::function<void()> task) {
  state().enqueue_at(when, std::move(task));
}

bool BackgroundQueue::drain(std::chrono::nanoseconds timeout) { return state().drain(timeout); }

void BackgroundQueue::stop() { state().stop(); }

bool BackgroundQueue::is_stopping() const { return state().is_stopping(); }

}  // namespace kiln
