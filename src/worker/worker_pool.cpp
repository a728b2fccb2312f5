// SPDX-License-Identifier: Apache-2.0
#include "worker/worker_pool.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/catch_to_error.hpp"
#include "base/error.hpp"
#include "base/process/signals.hpp"

namespace kiln {
namespace {

// Memory of one worker: NVRTC with a large header set, and the pages of a precompiled header.
constexpr std::uint64_t kWorkerBytes = std::uint64_t{512} << 20;
// Memory reserved for all other processes, especially the host program.
constexpr std::uint64_t kReserveBytes = std::uint64_t{512} << 20;
constexpr std::uint64_t kBytesForOneMore = kWorkerBytes + kReserveBytes;
// Maximum age of the value of free memory. Reading it takes 0.1 ms; a thread that waits needs it 100 times a second.
constexpr std::chrono::seconds kMaxMemoryAge{1};
// Minimum memory limit: no compiler works with less, regardless of the machine.
constexpr std::uint64_t kMinLimit = std::uint64_t{1} << 30;

// Interval of polling whether another process has released a slot: an eighth of the time waited so far, within these
// limits. Hundreds of processes can wait next to the compiles that they wait for.
constexpr std::chrono::milliseconds kSlotPollInterval{10};
constexpr std::chrono::milliseconds kMaxPollTime{100};
constexpr int kPartOfWait = 8;
// Interval of polling whether another process waits for a slot.
constexpr std::chrono::milliseconds kRequestPollInterval{200};
// Maximum time for which background work yields to urgent work of other processes, and the pause in urgent work after
// which it yields again.
constexpr std::chrono::seconds kMaxYield{10};
constexpr std::chrono::seconds kPauseOfUrgency{1};
// A worker on an extra slot retires early when idle, because the stuck slot that it replaces will be available again.
constexpr std::chrono::seconds kIdleOnExtra{1};
// Maximum wait of the manager thread. The pool's destructor waits this long if the wakeup is lost.
constexpr std::chrono::seconds kLongWait{5};

}  // namespace

struct WorkerPool::PooledWorker {
  enum class State : std::uint8_t { Starting, Idle, Busy, Stopping };

  PooledWorker(TakenSlot taken, const WorkerRequest& request, std::chrono::nanoseconds now)
      : slot(std::move(taken.slot)), slot_kind(taken.kind), compiler(request.compiler),
        environment(request.environment), runs_programs(request.runs_programs), started(now), since(now) {}

  bool serves(const WorkerRequest& request) const {
    return compiler == request.compiler && environment == request.environment;
  }

  WorkerSlots::Slot slot;  // before the worker, so that it is released after the worker ends
  const SlotKind slot_kind;
  std::string compiler;
  const std::vector<std::string> environment;
  const bool runs_programs;
  const std::chrono::nanoseconds started;
  std::chrono::nanoseconds since;  // time when it became idle
  Digest headers{};
  State state = State::Starting;
  bool served_urgent = false;  // true if its last compile was urgent
  std::unique_ptr<Worker> worker;
};

// A thread that waits in `take`.
struct WorkerPool::Waiter {
  const WorkerRequest& request;
  bool urgent = false;                                // true if its request is urgent and counted
  bool is_crowded_out = false;                        // true if other processes hold the slots that it could use
  std::optional<WorkerSlots::SlotRequest> announced;  // announced to other processes
};

unsigned recommended_workers(std::uint64_t memory) {
  return workers_for_budget({usable_cores(), memory, kWorkerBytes, kReserveBytes});
}

WorkerPool::WorkerPool(Options options) : options_(std::move(options)), slots_(options_.slots_directory) {}

WorkerPool::~WorkerPool() {
  interrupt();
  std::thread manager;
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    wake_manager();
    manager = std::move(manager_thread_);
  }
  if (manager.joinable()) manager.join();
}

WorkerPool::Handle::~Handle() {
  if (member_ != nullptr) pool_.give_back(member_, discarded_);
}

Worker& WorkerPool::Handle::worker() { return *member_->worker; }

void WorkerPool::Handle::set_compiler(std::string compiler) {
  const MutexLock lock(pool_.mutex_);
  member_->compiler = std::move(compiler);
}

bool WorkerPool::is_ending() const {
  const MutexLock lock(mutex_);
  return interrupted_;
}

std::vector<pid_t> WorkerPool::workers() const {
  const MutexLock lock(mutex_);
  std::vector<pid_t> ids;
  for (const auto& member : workers_) {
    if (member->worker != nullptr) ids.push_back(member->worker->id());
  }
  return ids;
}

std::uint64_t WorkerPool::free_memory() {
  const auto now = system_clock().steady();
  if (memory_read_at_ && now - *memory_read_at_ < kMaxMemoryAge) return memory_;
  memory_read_at_ = now;
  return memory_ = available_memory();
}

unsigned WorkerPool::current_limit() {
  return options_.max_workers ? *options_.max_workers : recommended_workers(free_memory());
}

WorkerPool::PooledWorker* WorkerPool::find_idle(const Waiter& waiter) {
  PooledWorker* found = nullptr;
  for (const auto& member : workers_) {
    if (member->state != PooledWorker::State::Idle || !member->serves(waiter.request)) continue;
    if (member->slot_kind == SlotKind::Reserved && !waiter.urgent) continue;
    if (found == nullptr || member->headers == waiter.request.headers) found = member.get();
  }
  return found;
}

bool WorkerPool::is_starting() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const auto& member) { return member->state == PooledWorker::State::Starting; });
}

std::size_t WorkerPool::members_on(SlotKind kind) const {
  return static_cast<std::size_t>(
      std::count_if(workers_.begin(), workers_.end(), [&](const auto& member) { return member->slot_kind == kind; }));
}

std::optional<WorkerPool::TakenSlot> WorkerPool::take_slot(Waiter& waiter) {
  const unsigned maximum = std::max(current_limit(), 1U);
  waiter.is_crowded_out = members_on(SlotKind::General) < maximum;
  if (waiter.is_crowded_out) {
    if (auto slot = slots_.take(maximum)) return TakenSlot{std::move(*slot), SlotKind::General};
  }
  const bool may_reserve = waiter.urgent && free_memory() >= kBytesForOneMore;
  if (may_reserve && members_on(SlotKind::Reserved) == 0) {
    if (auto slot = slots_.take_reserved()) return TakenSlot{std::move(*slot), SlotKind::Reserved};
  }
  const SlotWatch::Verdict verdict = watch_.look(maximum, may_reserve, system_clock().steady());
  if (!verdict.extra) return std::nullopt;
  // Regardless of free memory, one worker must make progress.
  if (!verdict.all_stuck && free_memory() < kBytesForOneMore) return std::nullopt;
  auto slot = slots_.take_extra(*verdict.extra);
  return slot ? std::optional(TakenSlot{std::move(*slot), SlotKind::Extra}) : std::nullopt;
}

bool WorkerPool::try_add_worker(Waiter& waiter) {
  auto slot = take_slot(waiter);
  if (!slot) return false;
  start_manager();  // first: without the manager thread the worker would never start
  workers_.push_back(std::make_unique<PooledWorker>(std::move(*slot), waiter.request, system_clock().steady()));
  return true;
}

void WorkerPool::start_manager() {
  if (manager_thread_.joinable()) return;
  wakeup_fd_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const ScopedSignalBlock blocked;
  manager_thread_ = std::thread([this, wakeup = wakeup_fd_.get()] { run_manager(wakeup); });
}

bool WorkerPool::is_urgent(const Waiter& waiter) const {
  if (waiter.request.urgent.is_raised()) return true;
  return waiter.announced && waiter.request.request != Digest() && slots_.is_awaited(waiter.request.request);
}

bool WorkerPool::yields(bool urgent_elsewhere) {
  if (!urgent_elsewhere) return false;
  const auto now = system_clock().steady();
  if (!urgent_seen_ || now - *urgent_seen_ > kPauseOfUrgency) urgent_since_ = now;
  urgent_seen_ = now;
  return now - urgent_since_ < kMaxYield;
}

// Retires the worker that has been idle for the longest time. No idle worker matches the request.
void WorkerPool::evict_idle_worker() {
  PooledWorker* oldest = nullptr;
  for (const auto& member : workers_) {
    if (member->state == PooledWorker::State::Stopping) return;  // a slot will be free
    if (member->state != PooledWorker::State::Idle) continue;
    if (oldest == nullptr || member->since < oldest->since) oldest = member.get();
  }
  if (oldest != nullptr) oldest->state = PooledWorker::State::Stopping;
}

Result<WorkerPool::Handle> WorkerPool::take(const WorkerRequest& request, const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] {
    const MutexLock lock(mutex_);
    changed_.notify_all();
  });
  const MutexLock lock(mutex_);
  Waiter waiter{request};
  Result<PooledWorker*> member = out_of_memory();
  try {
    member = wait_for_worker(waiter, stop);
  } catch (const std::exception& thrown) {  // out of memory or threads
    ignore_failures(
        [&] { member = make_error(Code::Unavailable, std::string("cannot start a worker: ") + thrown.what()); });
  }
  urgent_ -= waiter.urgent ? 1 : 0;
  changed_.notify_all();  // threads that yielded to this one
  if (!member) return member.error();
  return Handle(*this, *member);
}

Result<WorkerPool::PooledWorker*> WorkerPool::wait_for_worker(Waiter& waiter, const std::stop_token& stop) {
  const unsigned failed_before = failed_starts_;
  const auto start = system_clock().steady();
  while (!interrupted_ && !stop.stop_requested()) {
    if (failed_starts_ != failed_before) return *last_failure_;
    if (!waiter.urgent && is_urgent(waiter)) {
      waiter.urgent = true;
      ++urgent_;
      waiter.announced.reset();  // the announcement as background work
    }
    const bool goes_last = !waiter.urgent && yields(slots_.urgent_elsewhere());
    const bool is_our_turn = waiter.urgent || (urgent_ == 0 && !goes_last);
    if (PooledWorker* member = is_our_turn ? find_idle(waiter) : nullptr) {
      member->slot.show_worker(member->worker->id());  // first, because it can run out of memory
      member->state = PooledWorker::State::Busy;
      member->headers = waiter.request.headers;
      member->served_urgent = waiter.urgent;
      return member;
    }
    bool has_slot = !goes_last;
    const bool may_add = is_our_turn && !is_starting();
    if (may_add) has_slot = try_add_worker(waiter);
    if (!has_slot) evict_idle_worker();
    if (may_add || !has_slot) wake_manager();
    // If this process already has the maximum number of slots, other processes cannot help.
    const bool is_heard = !waiter.urgent || waiter.is_crowded_out;
    if (!has_slot && is_heard && !waiter.announced) waiter.announced = slots_.announce_request(waiter.urgent);
    const auto part = (system_clock().steady() - start) / kPartOfWait;
    changed_.wait_for(
        mutex_, has_slot ? kMaxPollTime : std::clamp<std::chrono::nanoseconds>(part, kSlotPollInterval, kMaxPollTime));
  }
  return make_error(Code::Cancelled, "cannot start a worker: the compile was canceled");
}

void WorkerPool::give_back(PooledWorker* member, bool discarded) {
  if (discarded) member->worker->kill();
  const auto now = system_clock().steady();
  bool turn_is_over = false;
  bool urgent_elsewhere = false;
  ignore_failures([&] {  // out of memory: the worker is kept
    turn_is_over = now - member->started > options_.max_slot_hold && slots_.has_other_waiters();
    urgent_elsewhere = slots_.urgent_elsewhere();
  });
  const MutexLock lock(mutex_);
  member->slot.show_worker(0);
  const bool makes_way =
      member->slot_kind == SlotKind::Reserved ? urgent_elsewhere : !member->served_urgent && yields(urgent_elsewhere);
  member->since = now;
  const bool leaves = discarded || turn_is_over || makes_way || interrupted_;
  member->state = leaves ? PooledWorker::State::Stopping : PooledWorker::State::Idle;
  changed_.notify_all();
  wake_manager();
}

void WorkerPool::interrupt() {
  const MutexLock lock(mutex_);
  interrupted_ = true;
  for (const auto& member : workers_) {
    if (member->worker != nullptr) member->worker->kill();
  }
  changed_.notify_all();
}

void WorkerPool::wake_manager() {
  if (!wakeup_fd_) return;
  const std::uint64_t one = 1;
  while (write(wakeup_fd_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void WorkerPool::run_manager(int wakeup) {
  pthread_setname_np(pthread_self(), "kiln-workers");
  for (;;) {
    start_pending_worker();
    ignore_failures([this] { retire_idle(); });
    reap();
    {
      const MutexLock lock(mutex_);
      if (ending_ && workers_.empty()) return;
    }
    wait_for_wakeup(wakeup);
  }
}

void WorkerPool::start_pending_worker() {
  PooledWorker* member = nullptr;
  {
    const MutexLock lock(mutex_);
    for (const auto& one : workers_) {
      if (one->state == PooledWorker::State::Starting) member = one.get();
    }
    if (member == nullptr) return;
  }
  // A runaway compile must not use all remaining memory, even if the setting allows it.
  const std::uint64_t maximum = std::max(available_memory() / 5 * 4, kMinLimit);
  auto worker = catch_to_error([&] {
    return Worker::start(
        {program(), member->environment, std::min(options_.memory_limit, maximum), member->runs_programs});
  });
  const MutexLock lock(mutex_);
  if (worker) {
    member->worker = std::move(*worker);
    member->since = system_clock().steady();
  } else {
    last_failure_ = std::move(worker).error();
    last_failure_->code = Code::Unavailable;
    ++failed_starts_;
  }
  member->state =
      member->worker != nullptr && !interrupted_ ? PooledWorker::State::Idle : PooledWorker::State::Stopping;
  changed_.notify_all();
}

void WorkerPool::retire_idle() {
  const bool others_wait = slots_.has_other_waiters();
  const bool urgent_elsewhere = others_wait && slots_.urgent_elsewhere();
  const auto now = system_clock().steady();
  const MutexLock lock(mutex_);
  const bool makes_way = urgent_ == 0 && yields(urgent_elsewhere);
  for (const auto& member : workers_) {
    if (member->state != PooledWorker::State::Idle) continue;
    const bool is_extra = member->slot_kind == SlotKind::Extra;
    const bool is_old =
        now - member->since > (is_extra ? std::min<std::chrono::nanoseconds>(kIdleOnExtra, options_.idle_timeout)
                                        : std::chrono::nanoseconds(options_.idle_timeout));
    const bool turn_is_over = others_wait && now - member->started > options_.max_slot_hold;
    const bool is_wanted = member->slot_kind == SlotKind::Reserved ? urgent_elsewhere : makes_way;
    if (interrupted_ || is_old || turn_is_over || is_wanted || member->worker->has_exited()) {
      member->state = PooledWorker::State::Stopping;
    }
  }
}

// Without the lock, because it takes time until a process has exited.
void WorkerPool::reap() {
  std::list<std::unique_ptr<PooledWorker>> leaving;
  {
    const MutexLock lock(mutex_);
    for (auto at = workers_.begin(); at != workers_.end();) {
      const auto next = std::next(at);
      if ((*at)->state == PooledWorker::State::Stopping) leaving.splice(leaving.end(), workers_, at);
      at = next;
    }
  }
  if (leaving.empty()) return;
  leaving.clear();
  const MutexLock lock(mutex_);
  changed_.notify_all();
}

void WorkerPool::wait_for_wakeup(int wakeup) {
  std::vector<pollfd> watched;
  ignore_failures([&] {
    watched.push_back({wakeup, POLLIN, 0});
    const MutexLock lock(mutex_);
    for (const auto& member : workers_) {
      if (member->state == PooledWorker::State::Idle) watched.push_back({member->worker->exit_fd(), POLLIN, 0});
    }
  });
  // Without a wakeup descriptor (none was available) it polls. Out of memory, it polls fewer descriptors and repeats
  // soon.
  const std::chrono::milliseconds undisturbed = wakeup < 0 ? kMaxPollTime : std::chrono::milliseconds(kLongWait);
  const std::chrono::milliseconds timeout = watched.size() == 1 ? undisturbed : kRequestPollInterval;
  (void)poll(watched.data(), watched.size(), static_cast<int>(timeout.count()));
  std::uint64_t rings = 0;
  (void)!read(wakeup, &rings, sizeof rings);
}

}  // namespace kiln
