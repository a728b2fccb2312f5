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

#include "backends/cccl/cccl_module.hpp"
#include "base/mutex.hpp"
#include "base/once.hpp"
#include "base/process/process_lifecycle.hpp"
#include "engine/engine.hpp"
#include "engine/thread_pool.hpp"
#include "events/event_emitter.hpp"
#include "events/metrics.hpp"
#include "events/trace_writer.hpp"
#include "session/components.hpp"
#include "session/driver_backend.hpp"
#include "session/handle_table.hpp"
#include "session/pending_units.hpp"
#include "session/status_writer.hpp"

namespace kiln {

/// The per-process state of a session. A forked child creates its own. The constructor does no work; each component is
/// created when it is first needed. Thread-safe.
class SessionImpl final : public ProcessLifecycleListener {
 public:
  /// `session` owns it.
  SessionImpl(const SessionOptions& options, Session::State& session);
  ~SessionImpl() override;

  /// Returns an id that is unique among all cores of this process and its ancestors. It changes with every call after
  /// which repeating an earlier request can have an effect.
  std::uint64_t number() const { return number_.load(std::memory_order_relaxed); }
  unsigned generation() const { return generation_; }
  const EventEmitter& emitter() const { return emitter_; }
  Components& components();

  /// Resolves a compile request. Every call of the program that needs a result goes through here; background requests
  /// do not.
  Result<ResolveResultPtr> get(const CompileRequest& request, std::chrono::nanoseconds timeout, Caller caller);

  /// Requests units for the devices of this process. Does nothing if there is none.
  void request(const Units& units);
  void request(const Units& units, const Target& target);
  void declare(const Units& units);
  void cancel(const Units& units);
  void cancel(const Units& units, const Target& target);
  void retry(const Units& units);
  void retry(const Units& units, const Target& target);

  /// See `Session`. Both apply to all targets.
  void refresh(const Units& units);
  void release(const Units& units);

  std::shared_ptr<KernelHandleState> handle(const Unit& unit, const std::string& entry) {
    return handles_.get(unit.identity(), entry);
  }
  bool owns(const KernelHandleState& handle) const { return &handle.table == &handles_; }
  /// See `HandleTable::find_ready`. Takes no lock.
  const detail::KernelState* find_ready(const Unit& unit, const std::string& entry) const {
    return handles_.find_ready(unit.identity(), entry);
  }
  /// `handle` must belong to this unit, and the caller must keep it alive.
  Result<const detail::KernelState*> get(KernelHandleState& handle, const Unit& unit, std::chrono::nanoseconds timeout,
                                         void* const* stream, Caller caller);

  /// A unit that is used as a whole rather than by its kernels, loaded in the calling thread's context.
  struct LoadedModule {
    std::shared_ptr<Module> module;
    Device* device = nullptr;  ///< owned by the core
    Target target;             ///< target of the current context
    std::uint64_t flow = 0;
    Origin origin = Origin::Compiled;
  };
  Result<LoadedModule> load_module(const Unit& unit, std::chrono::nanoseconds timeout, Caller caller);

  /// Opens the driver for a kind of units and returns it. An error names what is missing.
  Result<DriverBackend*> open(const std::string& kind, std::chrono::nanoseconds timeout);
  /// Waits until the units are ready on every device, at most `timeout`. Returns those that are not.
  std::vector<NotReady> wait_for(const Units& units, std::chrono::nanoseconds timeout, Caller caller);

  SessionStatus status() const;
  std::string metrics() const;
  std::vector<UndeclaredUse> undeclared() const;
  Status write_trace();

  void at_exit() override;
  void before_fork() override { handles_.before_fork(); }
  void in_parent() override { handles_.in_parent(); }
  void in_child() override { handles_.in_child(); }
  /// Abandons a core that was inherited through a fork: it is never used or destroyed again.
  void abandon();

 private:
  bool has_device(const std::string& kind);
  DriverBackend* backend(const std::string& kind);
  std::unique_ptr<DriverBackend> make_backend(const std::string& kind, const std::string& driver);
  Result<CcclLoader::LibraryPaths> cccl_library_paths();
  void open_requested_drivers();
  void submit_pending() KILN_REQUIRES(mutex_);
  /// Returns the targets of the devices of a kind, or null if its driver is not open.
  const Result<std::vector<Target>>* opened(const std::string& kind) const KILN_REQUIRES(mutex_);
  std::vector<CompileRequest> requests_for_devices(const Units& units) const KILN_REQUIRES(mutex_);
  void retry(const std::vector<CompileRequest>& requests);
  /// Assigns a new `number`.
  void renumber();
  StatusSnapshot snapshot(std::size_t maximum) const;

  /// Returns code from a bundle that the driver accepts, if there is any.
  Result<std::optional<ResolveResult>> find_in_bundles(const CompileRequest& request, std::uint64_t flow);
  Result<ResolveResult> resolve(const CompileRequest& request, const Recipe& recipe);
  Result<std::optional<ResolveResult>> lookup(const CompileRequest& request, std::uint64_t flow);
  /// Returns true if resolving the request now would give the same result.
  bool is_current(const CompileRequest& request, const ResolveResult& answer);
  /// Loads the result into the driver if the request is for a device. Only a rejection by the driver is an error.
  Status load(const CompileRequest& request, const ResolveResult& answer);
  /// Returns true if the driver has loaded the code and its bytes can be read again, so that they need not stay in
  /// memory.
  bool can_drop_bytes(const CompileRequest& request, const ResolveResult& answer);
  ResolveResult kept_of(const CompileRequest& request, ResolveResult answer);
  void emit_load(const CompileRequest& request, const ResolveResult& answer, double ms, const Status& outcome) const;
  /// Returns the result, loaded if the request is for a device.
  Result<ResolveResultPtr> get_loaded(const CompileRequest& request, std::chrono::nanoseconds timeout, Caller caller);
  Result<const detail::KernelState*> prepare_kernel(KernelHandleState& handle, DriverBackend& driver,
                                                    const CompileRequest& request, std::chrono::nanoseconds timeout,
                                                    Caller caller);
  Result<const detail::KernelState*> kernel_of(KernelHandleState& handle, DriverBackend& backend,
                                               const CompileRequest& request, const ResolveResult& answer);
  void prepare_in_current_context(const CompileRequest& request, DriverBackend& driver, const Target& target,
                                  const ResolveResult& answer, std::uint64_t epoch);
  static Result<const detail::KernelState*> kernel_while_capturing(KernelHandleState& handle, const Unit& unit,
                                                                   const Target& target, void* stream);
  void record_undeclared_use(const Unit& unit, const std::string& entry, Caller caller);

  const SessionOptions& options_;
  Session::State& session_;
  std::atomic<std::uint64_t> number_;
  const unsigned generation_;
  const std::shared_ptr<TraceWriter> trace_;  // null if no trace is requested
  const std::shared_ptr<Metrics> metrics_;    // null if no metrics are requested
  const EventEmitter emitter_;

  Once components_once_;
  std::unique_ptr<Components> components_;
  std::atomic<Components*> created_components_{
      nullptr};  // components_ once it exists, for readers that must not create it
  SessionImpl* next_abandoned_ = nullptr;

  mutable Mutex mutex_;
  Condition opened_;
  std::map<std::string, std::unique_ptr<DriverBackend>> backends_ KILN_GUARDED_BY(mutex_);
  std::map<std::string, bool> present_ KILN_GUARDED_BY(mutex_);
  WaitingUnits pending_units_ KILN_GUARDED_BY(mutex_);
  std::unordered_set<std::string> drivers_to_open_ KILN_GUARDED_BY(mutex_);
  std::unordered_set<Digest> declared_ KILN_GUARDED_BY(mutex_);
  std::vector<UndeclaredUse> undeclared_ KILN_GUARDED_BY(mutex_);
  HandleTable handles_;

  // Last, so that their threads end before the members that they use are destroyed.
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<ThreadPool> driver_opener_;
  std::unique_ptr<StatusWriter> status_writer_;
};

/// The state that copies of a session share. Thread-safe.
struct Session::State : std::enable_shared_from_this<Session::State> {
  explicit State(SessionOptions its_options) : options(std::move(its_options)) {}
  ~State();

  /// Returns the core of this process. Creates it when it is first needed, and again in a forked child, which abandons
  /// its parent's core.
  SessionImpl& impl();

  const SessionOptions options;
  std::atomic<SessionImpl*> current{nullptr};
};

}  // namespace kiln
