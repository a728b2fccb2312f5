#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/mutex.hpp"
#include "compile/worker.hpp"
#include "compile/worker_slots.hpp"

namespace kiln {

/// Where kiln-worker is: the given path, else beside the program or library that kiln is in, else in its libexec
/// folder. Empty where it is nowhere.
std::string find_worker(const std::string& configured);

/// How many workers this host bears now, by its cores and its free memory; at least one.
unsigned workers_now();

/// The kiln-worker processes of this process: started when there is something to compile, lent to one compile at a
/// time, kept warm for a while. How many there are is bounded by the slots of the host, which all processes of a user
/// share. Any thread. Nothing is started before the first `take`; destroying it ends every worker.
class WorkerPool {
 public:
  struct Options {
    std::string program;           ///< kiln-worker's path, empty to search
    std::optional<unsigned> most;  ///< workers at once on this host; nothing: by cores and memory
    std::uint64_t memory_limit = std::uint64_t{4} << 30;  ///< of one worker
    std::chrono::milliseconds idle{20'000};               ///< a worker that has had nothing to do for so long leaves
    std::chrono::milliseconds turn{2'000};                ///< after so long a worker makes room for another process's
    std::string slots_folder;                             ///< empty: the host's own
  };
  explicit WorkerPool(Options options);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// What a compile wants of its worker.
  struct Wish {
    std::string compiler;                  ///< which one; a worker that has opened another does not serve
    std::vector<std::string> environment;  ///< likewise
    Digest headers{};                      ///< of two that serve the one that had these last is taken
    bool urgent = false;                   ///< somebody waits for it: before those for whom nobody does
  };

 private:
  struct Member;

 public:
  /// A worker, for one compile.
  class Lease {
   public:
    Lease(Lease&& other) noexcept : pool_(other.pool_), member_(std::exchange(other.member_, nullptr)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    Worker& worker();
    /// It is of no use any more: it is killed, and not lent again.
    void spoil() { spoilt_ = true; }

   private:
    friend class WorkerPool;
    Lease(WorkerPool& pool, Member* member) : pool_(pool), member_(member) {}
    WorkerPool& pool_;
    Member* member_;
    bool spoilt_ = false;
  };

  /// Waits for a worker. Code::Unavailable where the program is not there or does not start; Code::Cancelled when
  /// `stop` was requested or the pool interrupted.
  Result<Lease> take(const Wish& wish, const std::stop_token& stop);

  /// Kills every worker and lends none any more: the program is ending.
  void interrupt();

  /// Whether it was interrupted.
  bool is_ending() const;
  /// Where the program is; empty where it is nowhere.
  std::string program() const { return find_worker(options_.program); }
  /// The workers that there are, for tests and for people.
  std::vector<pid_t> workers() const;

 private:
  Result<Member*> wait_for_member(const Wish& wish, const std::stop_token& stop) KILN_REQUIRES(mutex_);
  void give_back(Member* member, bool spoilt);
  unsigned most_now() const;
  Member* idle_for(const Wish& wish) KILN_REQUIRES(mutex_);
  // Has one more started, if it may be; false where the host has no slot to spare.
  bool add_member(const Wish& wish) KILN_REQUIRES(mutex_);
  void make_room() KILN_REQUIRES(mutex_);
  bool is_starting() const KILN_REQUIRES(mutex_);
  void wake_keeper() KILN_REQUIRES(mutex_);

  // The keeper's work. It is the one thread that starts workers, because they end with the thread that started them,
  // and the one that destroys them.
  void keep(int bell);
  void start_members();
  void dismiss_idle();
  void bury_members();
  void wait_for_work(int bell);

  const Options options_;
  WorkerSlots slots_;
  mutable Mutex mutex_;
  Fd bell_ KILN_GUARDED_BY(mutex_);  // rung when the keeper has something to do; never closed while it lives
  Condition changed_;
  std::list<std::unique_ptr<Member>> members_ KILN_GUARDED_BY(mutex_);
  unsigned failed_starts_ KILN_GUARDED_BY(mutex_) = 0;
  std::optional<Error> last_failure_ KILN_GUARDED_BY(mutex_);
  unsigned urgent_ KILN_GUARDED_BY(mutex_) = 0;  // of those who wait
  bool interrupted_ KILN_GUARDED_BY(mutex_) = false;
  bool ending_ KILN_GUARDED_BY(mutex_) = false;
  std::thread keeper_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
