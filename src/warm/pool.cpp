#include "warm/pool.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <system_error>
#include <utility>

#include "base/clock.hpp"
#include "base/guarded.hpp"
#include "base/machine.hpp"
#include "base/process_life.hpp"
#include "base/signals.hpp"

namespace kiln {
namespace {

// What one compile is allowed for. NVRTC with CUB takes 190 to 280 MB, a worker with precompiled headers 400.
constexpr std::uint64_t kMemoryOfACompile = 400ULL << 20;
// A thread that has nothing to do looks again after this long, though it is always notified.
constexpr std::chrono::minutes kLook{1};
// How long no further thread is tried after one found too little memory.
constexpr std::chrono::seconds kPatience{1};

// In which generation of forks this thread was a pool's; zero: in none. What a forked child has left of one is an
// ordinary thread.
thread_local unsigned pool_generation = 0;

}  // namespace

Pool::Pool(Options options, std::function<void()> work) : options_(std::move(options)), work_(std::move(work)) {}

Pool::~Pool() { stop(); }

bool Pool::on_a_thread() { return pool_generation == fork_generation() + 1; }

bool Pool::add(std::size_t pieces) {
  const MutexLock lock(mutex_);
  if (stopping_ || pieces == 0) return true;
  pieces_ += pieces;
  call_another();
  return started_ > 0;
}

// Whoever takes a piece does this where there is more than he can do, off the caller's time. Threads that are at work
// do not look, for as long as a compile takes: then it is for the caller.
void Pool::call_another() {
  if (idle_ > 0) {
    changed_.notify_one();
  } else if (starting_ == 0 && may_start()) {
    start();
  }
}

bool Pool::may_start() const {
  if (stopping_) return false;
  if (options_.most_threads > 0) return started_ < options_.most_threads;
  if (started_ == 0) return true;
  unsigned cores = 0;  // none that could be used where there is no memory to ask
  attempt([&] { cores = usable_cores(); });
  return started_ < cores && system_clock().steady() >= no_memory_until_;
}

// Looked at by the new thread, because that reads files, which is not for whoever calls.
bool Pool::has_memory() const {
  if (options_.most_threads > 0) return true;
  bool has = false;
  attempt([&] { has = available_memory(options_.machine) >= kMemoryOfACompile; });
  return has;
}

void Pool::start() {
  const SignalsBlocked blocked;
  try {
    threads_.emplace_back([this, number = started_] { run(number); });
  } catch (const std::exception&) {  // no thread or no memory for one
    return;
  }
  ++started_;
  ++starting_;
  ++alive_;
}

void Pool::run(unsigned number) {
  pool_generation = fork_generation() + 1;
  // The kernel keeps fifteen characters of a name.
  pthread_setname_np(pthread_self(), (options_.name + "-" + std::to_string(number)).substr(0, 15).c_str());
  if (options_.niceness != 0) {
    const auto thread = static_cast<id_t>(gettid());
    (void)setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + options_.niceness);
  }
  if (number > 0 && !has_memory()) return leave_for_want_of_memory();
  bool first = true;
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (std::exchange(first, false)) --starting_;
      while (pieces_ == 0 && !stopping_) {
        ++idle_;
        (void)changed_.wait_for(mutex_, kLook);
        --idle_;
      }
      if (stopping_) break;
      --pieces_;
      if (pieces_ > 0) call_another();
    }
    // What it works on sees to its own failures; out of memory it is better undone than the end of the process.
    attempt(work_);
  }
  const MutexLock lock(mutex_);
  --alive_;
  changed_.notify_all();
}

void Pool::leave_for_want_of_memory() {
  const MutexLock lock(mutex_);
  no_memory_until_ = system_clock().steady() + kPatience;
  --started_;
  --starting_;
  --alive_;
  changed_.notify_all();
}

void Pool::stop() {
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
    changed_.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
  // Somebody else may be stopping it and have the threads.
  const MutexLock lock(mutex_);
  while (alive_ > 0) (void)changed_.wait_for(mutex_, kLook);
}

}  // namespace kiln
