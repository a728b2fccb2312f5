#include "compile/worker_pool.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/dynamic_library.hpp"
#include "base/error.hpp"
#include "base/guarded.hpp"
#include "base/machine.hpp"

namespace kiln {
namespace {

// What a worker takes: NVRTC's own memory with a large header set, and the pages of a precompiled one.
constexpr std::uint64_t kWorkerBytes = std::uint64_t{512} << 20;
// What stays for everybody else, the program that we work for above all.
constexpr std::uint64_t kReserveBytes = std::uint64_t{512} << 20;
// Less than this no compiler can work with, whatever the machine has.
constexpr std::uint64_t kLeastLimit = std::uint64_t{1} << 30;

// How often to look whether another process has let go of a slot, and whether another would like one.
constexpr std::chrono::milliseconds kLookForSlot{10};
constexpr std::chrono::milliseconds kLookAtAll{100};
constexpr std::chrono::milliseconds kLookForWishes{200};
// Whoever ends the pool waits for the keeper, and so for this where the bell was not heard.
constexpr std::chrono::seconds kLongWait{5};

}  // namespace

struct WorkerPool::Member {
  enum class State : std::uint8_t { Starting, Idle, Busy, Leaving };

  Member(WorkerSlots::Slot its_slot, const Wish& wish, std::chrono::nanoseconds now)
      : slot(std::move(its_slot)), compiler(wish.compiler), environment(wish.environment), started(now), since(now) {}

  bool serves(const Wish& wish) const { return compiler == wish.compiler && environment == wish.environment; }

  WorkerSlots::Slot slot;  // before the worker, so that it is let go after that one's end
  const std::string compiler;
  const std::vector<std::string> environment;
  const std::chrono::nanoseconds started;
  std::chrono::nanoseconds since;  // when it became idle
  Digest headers{};
  State state = State::Starting;
  std::unique_ptr<Worker> worker;
};

std::string find_worker(const std::string& configured) {
  if (!configured.empty()) return access(configured.c_str(), X_OK) == 0 ? configured : std::string();
  std::string folder = path_of_code(reinterpret_cast<const void*>(&find_worker));
  // The program's own path is told as it was typed, which the working directory or PATH may have completed.
  if (folder.empty() || folder.front() != '/') {
    char self[4096];
    const ssize_t size = readlink("/proc/self/exe", self, sizeof self);
    if (size > 0) folder.assign(self, static_cast<std::size_t>(size));
  }
  folder.resize(folder.rfind('/') == std::string::npos ? 0 : folder.rfind('/'));
  // Beside the program, in an installed tree, in a Python package.
  for (const char* place : {"/kiln-worker", "/../bin/kiln-worker", "/../libexec/kiln/kiln-worker",
                            "/../../libexec/kiln/kiln-worker", "/bin/kiln-worker"}) {
    if (access((folder + place).c_str(), X_OK) == 0) return folder + place;
  }
  return {};
}

unsigned workers_now() { return workers_within({usable_cores(), available_memory(), kWorkerBytes, kReserveBytes}); }

WorkerPool::WorkerPool(Options options) : options_(std::move(options)), slots_(options_.slots_folder) {}

WorkerPool::~WorkerPool() {
  interrupt();
  std::thread keeper;
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    wake_keeper();
    keeper = std::move(keeper_);
  }
  if (keeper.joinable()) keeper.join();
}

WorkerPool::Lease::~Lease() {
  if (member_ != nullptr) pool_.give_back(member_, spoilt_);
}

Worker& WorkerPool::Lease::worker() { return *member_->worker; }

bool WorkerPool::is_ending() const {
  const MutexLock lock(mutex_);
  return interrupted_;
}

std::vector<pid_t> WorkerPool::workers() const {
  const MutexLock lock(mutex_);
  std::vector<pid_t> ids;
  for (const auto& member : members_) {
    if (member->worker != nullptr) ids.push_back(member->worker->id());
  }
  return ids;
}

// The machine is asked each time: what it has to spare changes.
unsigned WorkerPool::most_now() const { return options_.most ? *options_.most : workers_now(); }

WorkerPool::Member* WorkerPool::idle_for(const Wish& wish) {
  Member* found = nullptr;
  for (const auto& member : members_) {
    if (member->state != Member::State::Idle || !member->serves(wish)) continue;
    if (found == nullptr || member->headers == wish.headers) found = member.get();
  }
  return found;
}

bool WorkerPool::is_starting() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const auto& member) { return member->state == Member::State::Starting; });
}

bool WorkerPool::add_member(const Wish& wish) {
  const unsigned most = std::max(most_now(), 1U);
  if (members_.size() >= most) return false;
  auto slot = slots_.take(most);
  if (!slot) return false;
  // First: without somebody who starts it a member would be waited for in vain.
  if (!keeper_.joinable()) {
    bell_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    keeper_ = std::thread([this, bell = bell_.get()] { keep(bell); });
  }
  members_.push_back(std::make_unique<Member>(std::move(*slot), wish, system_clock().steady()));
  return true;
}

// Of those who have nothing to do the one that has waited longest goes: none of them serves whoever asks.
void WorkerPool::make_room() {
  Member* oldest = nullptr;
  for (const auto& member : members_) {
    if (member->state == Member::State::Leaving) return;  // there will be room
    if (member->state != Member::State::Idle) continue;
    if (oldest == nullptr || member->since < oldest->since) oldest = member.get();
  }
  if (oldest != nullptr) oldest->state = Member::State::Leaving;
}

Result<WorkerPool::Lease> WorkerPool::take(const Wish& wish, const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] {
    const MutexLock lock(mutex_);
    changed_.notify_all();
  });
  const MutexLock lock(mutex_);
  urgent_ += wish.urgent ? 1 : 0;
  Result<Member*> member = out_of_memory();
  try {
    member = wait_for_member(wish, stop);
  } catch (const std::exception& thrown) {  // no memory, or no thread
    attempt([&] { member = failure(Code::Unavailable, std::string("no worker was started: ") + thrown.what()); });
  }
  urgent_ -= wish.urgent ? 1 : 0;
  changed_.notify_all();  // those who let us go first
  if (!member) return member.error();
  return Lease(*this, *member);
}

Result<WorkerPool::Member*> WorkerPool::wait_for_member(const Wish& wish, const std::stop_token& stop) {
  std::optional<WorkerSlots::Wish> in_want;
  const unsigned failed_before = failed_starts_;
  while (!interrupted_ && !stop.stop_requested()) {
    if (failed_starts_ != failed_before) return *last_failure_;
    const bool is_our_turn = wish.urgent || urgent_ == 0;
    if (Member* member = is_our_turn ? idle_for(wish) : nullptr) {
      member->state = Member::State::Busy;
      member->headers = wish.headers;
      return member;
    }
    bool has_slot = true;
    if (is_our_turn && !is_starting()) {
      has_slot = add_member(wish);
      if (!has_slot) make_room();
      wake_keeper();
    }
    if (!has_slot && !in_want) in_want = slots_.wish();
    changed_.wait_for(mutex_, has_slot ? kLookAtAll : kLookForSlot);
  }
  return failure(Code::Cancelled, "no worker was started: the compile is not wanted any more");
}

void WorkerPool::give_back(Member* member, bool spoilt) {
  if (spoilt) member->worker->kill();
  const auto now = system_clock().steady();
  const bool turn_is_over = now - member->started > options_.turn && slots_.wanted_elsewhere();
  const MutexLock lock(mutex_);
  member->since = now;
  member->state = spoilt || turn_is_over || interrupted_ ? Member::State::Leaving : Member::State::Idle;
  changed_.notify_all();
  wake_keeper();
}

void WorkerPool::interrupt() {
  const MutexLock lock(mutex_);
  interrupted_ = true;
  for (const auto& member : members_) {
    if (member->worker != nullptr) member->worker->kill();
  }
  changed_.notify_all();
}

void WorkerPool::wake_keeper() {
  if (!bell_) return;
  const std::uint64_t one = 1;
  while (write(bell_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void WorkerPool::keep(int bell) {
  pthread_setname_np(pthread_self(), "kiln-workers");
  for (;;) {
    start_members();
    attempt([this] { dismiss_idle(); });
    bury_members();
    {
      const MutexLock lock(mutex_);
      if (ending_ && members_.empty()) return;
    }
    wait_for_work(bell);
  }
}

void WorkerPool::start_members() {
  Member* member = nullptr;
  {
    const MutexLock lock(mutex_);
    for (const auto& one : members_) {
      if (one->state == Member::State::Starting) member = one.get();
    }
    if (member == nullptr) return;
  }
  // A runaway compile must not take all that is left, even where the setting would let it.
  const std::uint64_t most = std::max(available_memory() / 5 * 4, kLeastLimit);
  auto worker = guarded([&] {
    return Worker::start({program(), member->environment, std::min(options_.memory_limit, most)});
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
  member->state = member->worker != nullptr && !interrupted_ ? Member::State::Idle : Member::State::Leaving;
  changed_.notify_all();
}

void WorkerPool::dismiss_idle() {
  const bool others_wait = slots_.wanted_elsewhere();
  const auto now = system_clock().steady();
  const MutexLock lock(mutex_);
  for (const auto& member : members_) {
    if (member->state != Member::State::Idle) continue;
    const bool is_old = now - member->since > options_.idle;
    const bool turn_is_over = others_wait && now - member->started > options_.turn;
    if (interrupted_ || is_old || turn_is_over || member->worker->has_ended()) member->state = Member::State::Leaving;
  }
}

// Off the lock: it takes a moment until a process has ended.
void WorkerPool::bury_members() {
  std::list<std::unique_ptr<Member>> leaving;
  {
    const MutexLock lock(mutex_);
    for (auto at = members_.begin(); at != members_.end();) {
      const auto next = std::next(at);
      if ((*at)->state == Member::State::Leaving) leaving.splice(leaving.end(), members_, at);
      at = next;
    }
  }
  if (leaving.empty()) return;
  leaving.clear();
  const MutexLock lock(mutex_);
  changed_.notify_all();
}

void WorkerPool::wait_for_work(int bell) {
  std::vector<pollfd> watched;
  attempt([&] {
    watched.push_back({bell, POLLIN, 0});
    const MutexLock lock(mutex_);
    for (const auto& member : members_) {
      if (member->state == Member::State::Idle) watched.push_back({member->worker->watched(), POLLIN, 0});
    }
  });
  // There is no bell where no descriptor was left for one; out of memory fewer are watched, and looked at again soon.
  const std::chrono::milliseconds undisturbed = bell < 0 ? kLookAtAll : std::chrono::milliseconds(kLongWait);
  const std::chrono::milliseconds limit = watched.size() == 1 ? undisturbed : kLookForWishes;
  (void)poll(watched.data(), watched.size(), static_cast<int>(limit.count()));
  std::uint64_t rings = 0;
  (void)!read(bell, &rings, sizeof rings);
}

}  // namespace kiln
