#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include <kiln/session.hpp>

#include "base/mutex.hpp"
#include "base/once.hpp"
#include "base/process_life.hpp"
#include "base/read_index.hpp"
#include "device/cccl_module.hpp"
#include "observe/metrics.hpp"
#include "observe/observer.hpp"
#include "observe/trace.hpp"
#include "session/backend.hpp"
#include "session/status_board.hpp"
#include "session/toolbox.hpp"
#include "warm/engine.hpp"
#include "warm/pool.hpp"

namespace kiln {

/// A kernel for one target, as its users see it. Constant; kept until the core ends.
struct detail::KernelState {
  std::shared_ptr<DeviceKernel> kernel;
  std::string name;
  std::string unit;
  Target target;
  std::uint64_t flow = 0;
  Origin origin = Origin::Compiled;
  Observer observer;

  /// The threads of a block that the driver would take, for those who watch; zero where it does not say. Asked once,
  /// with the shared memory of the first launch.
  unsigned advised_block(std::size_t shared_bytes) const;
  mutable std::atomic<unsigned> advised{0};
};

/// What handles of one kernel share. Kept until the core ends.
struct HandleState : detail::ReadySlot {
  HandleState(Session::State& owner, const Unit& what, std::string which)
      : session(owner), unit(what), identity(unit.identity()), entry(std::move(which)) {}

  Session::State& session;
  const Unit unit;
  const Digest identity;  // the unit's
  const std::string entry;

  /// The kernel for a target; null where it was not made yet.
  const detail::KernelState* find(const Target& target) const KILN_REQUIRES(mutex);

  Mutex mutex;
  std::vector<std::unique_ptr<const detail::KernelState>> kernels KILN_GUARDED_BY(mutex);  // one per target
  std::vector<std::unique_ptr<const detail::KernelState>> refused KILN_GUARDED_BY(mutex);  // by the driver, late
};

/// What a session works with in one process: a forked child gets one of its own. Making it does nothing; each part is
/// made at its first need. Any thread.
class Core final : public ProcessListener {
 public:
  /// `session` owns it.
  Core(const SessionOptions& options, Session::State& session);
  ~Core() override;

  /// Of all cores of this process and its ancestors, none has the same.
  std::uint64_t number() const { return number_; }
  unsigned generation() const { return generation_; }
  const Observer& observer() const { return observer_; }
  Toolbox& toolbox();

  /// What becomes of an order. All that a program asks for goes through here; what it only requests does not.
  Result<const Answer*> get(const Order& order, std::chrono::nanoseconds limit, Caller caller);

  /// For the devices that are here; nothing where there is none.
  void request(const Units& units);
  void request(const Units& units, const Target& target);
  void declare(const Units& units);
  void cancel(const Units& units);
  void cancel(const Units& units, const Target& target);
  void retry(const Units& units);
  void retry(const Units& units, const Target& target);

  HandleState& handle(const Unit& unit, const std::string& entry);
  /// The handle where there is one already. No lock is taken.
  HandleState* find_handle(const Unit& unit, const std::string& entry) const;
  Result<const detail::KernelState*> get(HandleState& handle, std::chrono::nanoseconds limit, void* const* stream,
                                         Caller caller);

  /// What a unit became that is used as a whole rather than by its kernels, loaded for the calling thread's context.
  struct Used {
    std::shared_ptr<Module> module;
    Device* device = nullptr;  ///< the core's
    Target target;             ///< of the place
    std::uint64_t flow = 0;
    Origin origin = Origin::Compiled;
  };
  Result<Used> use(const Unit& unit, std::chrono::nanoseconds limit, Caller caller);

  /// The driver of a kind of units, opened; an error says what is missing.
  Result<Backend*> open(const std::string& kind, std::chrono::nanoseconds limit);
  /// Waits until the units are ready on every device, at most so long; what is not.
  std::vector<Cold> wait_for(const Units& units, std::chrono::nanoseconds limit, Caller caller);

  SessionStatus status() const;
  std::string metrics() const;
  std::vector<UndeclaredUse> undeclared() const;
  Status write_trace();

  void at_exit() override;
  void in_child() override;
  /// Leaves it alone for good: it came with a fork.
  void abandon();

 private:
  bool present(const std::string& kind);
  Backend* backend(const std::string& kind);
  std::unique_ptr<Backend> make_backend(const std::string& kind, const std::string& driver);
  Result<CcclLoader::Home> cccl_home();
  void open_requested();
  void hand_on_waiting() KILN_REQUIRES(mutex_);
  /// The targets of the devices of a kind; null where its driver is not open.
  const Result<std::vector<Target>>* opened(const std::string& kind) const KILN_REQUIRES(mutex_);
  std::vector<Order> orders_for(const Units& units) const KILN_REQUIRES(mutex_);
  void retry(const std::vector<Order>& orders);
  Glance glance(std::size_t most) const;

  /// What a bundle has for it and the driver takes.
  Result<std::optional<Answer>> serve(const Order& order, std::uint64_t flow);
  Result<Answer> resolve(const Order& order, const Recipe& recipe);
  Result<std::optional<Answer>> look(const Order& order, std::uint64_t flow);
  /// Gives the answer to the driver, where the order is for a device. Only a refusal is an error.
  Status load(const Order& order, const Answer& answer);
  void tell_of_load(const Order& order, const Answer& answer, double ms, const Status& outcome) const;
  /// The answer, loaded where the order is for a device.
  Result<const Answer*> get_loaded(const Order& order, std::chrono::nanoseconds limit, Caller caller);
  Result<const detail::KernelState*> ready_kernel(HandleState& handle, Backend& driver, const Order& order,
                                                  std::chrono::nanoseconds limit, Caller caller);
  void forget_kernel(HandleState& handle, const detail::KernelState& kernel);
  Result<const detail::KernelState*> kernel_of(HandleState& handle, Backend& backend, const Target& target,
                                               const Answer& answer);
  void prepare_here(const Unit& unit, Backend& driver, const Target& target, const Answer& answer);
  Result<const detail::KernelState*> while_capturing(HandleState& handle, const Target& target, void* stream);
  void note_use(const Unit& unit, const std::string& entry, Caller caller);

  const SessionOptions& options_;
  Session::State& session_;
  const std::uint64_t number_;
  const unsigned generation_;
  const std::shared_ptr<TraceWriter> trace_;  // null where nobody wants one
  const std::shared_ptr<Metrics> metrics_;    // likewise
  const Observer observer_;

  Once toolbox_once_;
  std::unique_ptr<Toolbox> toolbox_;
  std::atomic<Toolbox*> made_toolbox_{nullptr};  // for those who do not want it made
  Core* next_abandoned_ = nullptr;

  mutable Mutex mutex_;
  Condition opened_;
  std::map<std::string, std::unique_ptr<Backend>> backends_ KILN_GUARDED_BY(mutex_);
  std::map<std::string, bool> present_ KILN_GUARDED_BY(mutex_);
  Units waiting_ KILN_GUARDED_BY(mutex_);  // requested before their driver was open
  std::unordered_set<const void*> waiting_addresses_ KILN_GUARDED_BY(mutex_);
  std::unordered_set<std::string> to_open_ KILN_GUARDED_BY(mutex_);
  std::unordered_set<Digest> declared_ KILN_GUARDED_BY(mutex_);
  std::vector<UndeclaredUse> undeclared_ KILN_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<HandleState>> handles_ KILN_GUARDED_BY(mutex_);
  ReadIndex<HandleState> handle_index_;  // written under the mutex

  // Last, so that their threads end before what they use.
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Pool> opener_;
  std::unique_ptr<StatusBoard> board_;
};

/// What copies of a session share.
struct Session::State : std::enable_shared_from_this<Session::State> {
  explicit State(SessionOptions its_options) : options(std::move(its_options)) {}
  ~State();

  /// The core of this process: made at the first need, and anew in a forked child, which leaves its parent's alone.
  Core& core();

  const SessionOptions options;
  std::atomic<Core*> current{nullptr};
};

}  // namespace kiln
