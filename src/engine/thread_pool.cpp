// SPDX-License-Identifier: Apache-2.0
#include "engine/thread_pool.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/catch_to_error.hpp"
#include "base/clock.hpp"
#include "base/process/process_lifecycle.hpp"
#include "base/process/signals.hpp"
#include "base/process/system_info.hpp"

namespace kiln {
namespace {

// Memory reserved for one compile. NVRTC with CUB takes 190 to 280 MB, a worker with precompiled headers 400 MB.
constexpr std::uint64_t kCompileMemoryBytes = 400ULL << 20;
// Interval at which an idle thread checks for work. It is always notified; this is only a safeguard.
constexpr std::chrono::minutes kPollInterval{1};
// Maximum number of waiting threads that get a substitute. Further ones count as if they compiled.
constexpr unsigned kMaxSubstitutes = 64;
// Time during which no further thread is started after a thread found too little memory.
constexpr std::chrono::seconds kHangTimeout{1};

// The fork generation in which this thread belonged to a pool, plus one; 0 means none. In a forked child, the thread
// that called fork is an ordinary thread.
thread_local unsigned pool_generation = 0;

}  // namespace

ThreadPool::ThreadPool(Options options, std::function<void()> work)
    : options_(std::move(options)), work_(std::move(work)) {}

ThreadPool::~ThreadPool() { stop(); }

bool ThreadPool::is_pool_thread() { return pool_generation == fork_generation() + 1; }

bool ThreadPool::submit(std::size_t pieces) {
  const MutexLock lock(mutex_);
  if (stopping_ || pieces == 0) return true;
  pieces_ += pieces;
  wake_or_start();
  return started_ > waiting_;
}

// Called by a thread that takes a work item when there are more, which keeps the cost off the caller. Busy threads do
// not check for the duration of a compile; then the caller does this.
void ThreadPool::wake_or_start() {
  if (idle_ > 0) {
    changed_.notify_one();
  } else if (starting_ == 0 && !stopping_) {
    const bool is_substitute = substitutes_ < std::min(waiting_, kMaxSubstitutes);
    if (is_substitute || may_start()) start(is_substitute);
  }
}

bool ThreadPool::may_start() const {
  const unsigned own = started_ - substitutes_;
  if (options_.max_threads > 0) return own < options_.max_threads;
  if (own == 0) return true;
  unsigned cores = 0;  // stays 0 if there is no memory for the query
  ignore_failures([&] { cores = usable_cores(); });
  return own < cores && options_.clock->steady() >= no_memory_until_;
}

// Checked by the new thread, because it reads files and must not delay the caller.
bool ThreadPool::has_memory() const {
  if (options_.max_threads > 0) return true;
  bool has = false;
  ignore_failures([&] { has = available_memory(options_.machine) >= kCompileMemoryBytes; });
  return has;
}

// A substitute uses the memory of the thread that waits.
void ThreadPool::start(bool is_substitute) {
  const ScopedSignalBlock blocked;
  const bool needs_memory = started_ > 0 && !is_substitute;
  try {
    threads_.emplace_back([this, number = started_, needs_memory] { run(number, needs_memory); });
  } catch (const std::exception&) {  // no thread, or no memory for one
    return;
  }
  ++started_;
  substitutes_ += is_substitute ? 1 : 0;
  ++starting_;
  ++alive_;
}

void ThreadPool::run(unsigned number, bool needs_memory) {
  pool_generation = fork_generation() + 1;
  // The kernel keeps 15 characters of a thread name.
  pthread_setname_np(pthread_self(), (options_.name + "-" + std::to_string(number)).substr(0, 15).c_str());
  if (options_.niceness != 0) {
    const auto thread = static_cast<id_t>(syscall(SYS_gettid));
    (void)setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + options_.niceness);
  }
  if (needs_memory && !has_memory()) return exit_on_low_memory();
  // Work items handle their own failures. If memory runs out, skipping one is better than ending the process.
  for (bool is_first = true; take_piece(is_first); is_first = false) ignore_failures(work_);
}

bool ThreadPool::take_piece(bool is_first) {
  std::thread before;
  {
    const MutexLock lock(mutex_);
    if (is_first) --starting_;
    const bool is_surplus = !is_first && substitutes_ > waiting_;
    while (pieces_ == 0 && !stopping_ && !is_surplus) {
      ++idle_;
      (void)changed_.wait_for(mutex_, kPollInterval);
      --idle_;
    }
    if (!stopping_ && !is_surplus) {
      --pieces_;
      if (pieces_ > 0) wake_or_start();
      return true;
    }
    if (is_surplus) --substitutes_;
    before = leave();
    if (pieces_ > 0) wake_or_start();
  }
  if (before.joinable()) before.join();
  return false;
}

void ThreadPool::exit_on_low_memory() {
  std::thread before;
  {
    const MutexLock lock(mutex_);
    no_memory_until_ = options_.clock->steady() + kHangTimeout;
    --starting_;
    before = leave();
    if (pieces_ > 0) wake_or_start();  // as a substitute for a waiting thread, which needs no further memory
  }
  if (before.joinable()) before.join();
}

std::thread ThreadPool::leave() {
  --started_;
  --alive_;
  changed_.notify_all();
  const auto own = std::find_if(threads_.begin(), threads_.end(), [](const std::thread& thread) {
    return thread.get_id() == std::this_thread::get_id();
  });
  if (own == threads_.end()) return {};  // `stop` owns it and joins it
  std::swap(*own, threads_.back());
  std::thread before = std::exchange(left_, std::move(threads_.back()));
  threads_.pop_back();
  return before;
}

void ThreadPool::begin_wait() noexcept {
  const MutexLock lock(mutex_);
  ++waiting_;
  if (pieces_ > 0) wake_or_start();
}

void ThreadPool::end_wait() noexcept {
  const MutexLock lock(mutex_);
  --waiting_;
}

std::size_t ThreadPool::unjoined() const {
  const MutexLock lock(mutex_);
  return threads_.size() + (left_.joinable() ? 1 : 0);
}

void ThreadPool::stop() {
  std::vector<std::thread> threads;
  std::thread last;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
    last.swap(left_);
    changed_.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
  if (last.joinable()) last.join();
  // Another thread may be inside `stop` and own the threads.
  const MutexLock lock(mutex_);
  while (alive_ > 0) (void)changed_.wait_for(mutex_, kPollInterval);
}

}  // namespace kiln
