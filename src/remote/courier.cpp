#include "remote/courier.hpp"

#include <pthread.h>

#include <atomic>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/guarded.hpp"
#include "base/mutex.hpp"
#include "base/signals.hpp"

namespace kiln {
namespace {

using Time = std::chrono::nanoseconds;

// A thread that has nothing to do looks again after this long, though it is always notified.
constexpr std::chrono::minutes kLook{1};

}  // namespace

class Courier::State : public std::enable_shared_from_this<State> {
 public:
  State(const FleetPolicy& policy, const Clock& clock) : policy_(policy), clock_(clock) {}

  bool ending() const { return ending_.load(std::memory_order_acquire); }

  struct Errand {
    std::uint64_t bytes = 0;
    bool counted = false;  // among those of which there may only be so many
    bool timed = false;    // sent for a later moment: nobody waits until it is done
    std::function<void()> run = {};
  };

  bool send(Errand errand) {
    const MutexLock lock(mutex_);
    if (stopped_) return false;
    if (errand.counted && !fits(errand)) return false;
    if (!start() && errand.counted) return false;
    queue_.push_back(std::move(errand));
    const Errand& sent = queue_.back();
    if (sent.counted) {
      ++waiting_;
      bytes_ += sent.bytes;
    }
    ++sent_;
    changed_.notify_all();
    return true;
  }

  void send_at(Time when, std::function<void()> run) {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    (void)start();
    later_.emplace(when, std::move(run));
    changed_.notify_all();
  }

  bool drain(Time limit) {
    const Deadline deadline(clock_, limit);
    const MutexLock lock(mutex_);
    const std::uint64_t all = sent_;
    while (done_ < all) {
      const Time left = deadline.left();
      if (left <= Time(0) || stopped_ || !thread_.joinable()) return false;
      clock_.wait(changed_, mutex_, left);
    }
    return true;
  }

  void stop() {
    (void)drain(policy_.drain_limit);
    std::list<Errand> forgotten;  // their ends are not for the lock
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
    // Somebody else may be stopping it and have the thread.
    const MutexLock lock(mutex_);
    while (alive_) clock_.wait(changed_, mutex_, kLook);
  }

  /// For the end of a courier on its own thread, because an errand had the last hold on it: the thread goes by itself.
  bool leave_to_its_thread() {
    const MutexLock lock(mutex_);
    if (!thread_.joinable() || thread_.get_id() != std::this_thread::get_id()) return false;
    stopped_ = true;
    thread_.detach();
    return true;
  }

 private:
  bool fits(const Errand& errand) const KILN_REQUIRES(mutex_) {
    return waiting_ < policy_.most_uploads && errand.bytes <= policy_.most_upload_bytes &&
           bytes_ <= policy_.most_upload_bytes - errand.bytes;
  }

  // False where no thread can be had; the next errand tries again.
  bool start() KILN_REQUIRES(mutex_) {
    if (thread_.joinable()) return true;
    const SignalsBlocked blocked;
    try {
      thread_ = std::thread([self = shared_from_this()] { self->run(); });
    } catch (const std::exception&) {
      return false;
    }
    alive_ = true;
    return true;
  }

  void run() {
    pthread_setname_np(pthread_self(), "kiln-courier");
    while (std::optional<Errand> errand = next()) {
      attempt(errand->run);   // out of memory it is undone, and the process goes on
      errand->run = nullptr;  // what it held goes before it counts as done
      finish(*errand);
    }
    const MutexLock lock(mutex_);
    alive_ = false;
    changed_.notify_all();
  }

  // Nothing: it is over.
  std::optional<Errand> next() {
    const MutexLock lock(mutex_);
    for (;;) {
      if (stopped_) return std::nullopt;
      const Time now = clock_.steady();
      if (!later_.empty() && later_.begin()->first <= now) {
        return Errand{0, false, true, std::move(later_.extract(later_.begin()).mapped())};
      }
      if (!queue_.empty()) {
        Errand errand = std::move(queue_.front());
        queue_.pop_front();
        return errand;
      }
      clock_.wait(changed_, mutex_, later_.empty() ? Time(kLook) : later_.begin()->first - now);
    }
  }

  void finish(const Errand& errand) {
    const MutexLock lock(mutex_);
    if (!errand.timed) ++done_;
    if (errand.counted) {
      --waiting_;
      bytes_ -= errand.bytes;
    }
    changed_.notify_all();
  }

  const FleetPolicy policy_;
  const Clock& clock_;
  std::atomic<bool> ending_{false};
  Mutex mutex_;
  Condition changed_;
  std::list<Errand> queue_ KILN_GUARDED_BY(mutex_);
  std::multimap<Time, std::function<void()>> later_ KILN_GUARDED_BY(mutex_);
  std::size_t waiting_ KILN_GUARDED_BY(mutex_) = 0;  // of those that count, with the one under way
  std::uint64_t bytes_ KILN_GUARDED_BY(mutex_) = 0;  // theirs
  std::uint64_t sent_ KILN_GUARDED_BY(mutex_) = 0;
  std::uint64_t done_ KILN_GUARDED_BY(mutex_) = 0;
  bool stopped_ KILN_GUARDED_BY(mutex_) = false;
  bool alive_ KILN_GUARDED_BY(mutex_) = false;
  std::thread thread_ KILN_GUARDED_BY(mutex_);
};

/// The state and its thread, which holds it too.
struct Courier::Hold {
  Hold(const FleetPolicy& policy, const Clock& clock) : state(std::make_shared<State>(policy, clock)) {}
  ~Hold() {
    if (!state->leave_to_its_thread()) state->stop();
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  const std::shared_ptr<State> state;
};

Courier::Courier(const FleetPolicy& policy, const Clock& clock) : policy_(policy), clock_(clock) {
  (void)state();  // so that to end it needs no memory
}
Courier::~Courier() = default;

Courier::State& Courier::state() const { return *hold_.get(policy_, clock_).state; }

bool Courier::send(std::uint64_t bytes, std::function<void()> errand) {
  return state().send({bytes, true, false, std::move(errand)});
}

void Courier::send_always(std::function<void()> errand) { (void)state().send({0, false, false, std::move(errand)}); }

void Courier::send_at(std::chrono::nanoseconds when, std::function<void()> errand) {
  state().send_at(when, std::move(errand));
}

bool Courier::drain(std::chrono::nanoseconds limit) { return state().drain(limit); }

void Courier::stop() { state().stop(); }

bool Courier::ending() const { return state().ending(); }

}  // namespace kiln
