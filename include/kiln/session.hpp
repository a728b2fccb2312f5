// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/backend.hpp>
#include <kiln/device_info.hpp>
#include <kiln/event.hpp>
#include <kiln/explanation.hpp>
#include <kiln/export.hpp>
#include <kiln/external_cache.hpp>
#include <kiln/kernel.hpp>
#include <kiln/launch.hpp>
#include <kiln/requirements.hpp>
#include <kiln/result.hpp>
#include <kiln/status.hpp>
#include <kiln/target.hpp>
#include <kiln/unit.hpp>
#include <kiln/wait.hpp>

namespace kiln {

class Stream;

namespace detail {
struct SessionAccess;
}

/// The caller's OpenCL context and device, for a session to use. Set both members or neither.
struct OpenClContext {
  void* context = nullptr;  ///< cl_context
  void* device = nullptr;   ///< cl_device_id
};

/// The signing keys that a program trusts for bundles and remote-store entries, in addition to those in the policy file
/// that the setting `trust.policy` names. See docs/how-to/sign-and-trust.md. Bundles that are linked into the program
/// need no signature.
struct TrustOptions {
  /// A public key and the namespaces that it may sign for.
  struct Key {
    std::string text;                     ///< public key, as printed by `kiln key show`
    std::vector<std::string> namespaces;  ///< namespaces that the key may sign for: "acme/vision", "acme/*", "*"
  };
  std::vector<Key> keys;
  /// Minimum epoch by namespace. kiln rejects content with a lower epoch, regardless of who signed it.
  std::map<std::string, std::uint64_t> minimum_epochs;
  /// Maximum age in days (1 to 365) by live namespace ("acme/live", "acme/live/*", never "*"). kiln trusts what a
  /// certified host published in that namespace for this long.
  std::map<std::string, std::uint64_t> live_namespaces;
  /// Revoked keys, as printed by `kiln key show`, or their ids. kiln rejects these keys and the hosts that they
  /// certified.
  std::vector<std::string> revoked;
  /// If true, bundles and remote entries with code of another system, such as Triton, are rejected. See
  /// docs/how-to/adapters.md.
  bool reject_external = false;
};

/// Options of a session. Every member has a default; `docs/reference/configuration.md` lists the settings.
struct SessionOptions {
  /// Settings by name, as in a configuration file: {"cache.dir", "/var/cache/app"}. Configuration files and KILN_*
  /// variables override them, so that the user of the program decides. An unknown name or an invalid value is ignored
  /// and reported to `on_event`.
  std::map<std::string, std::string> settings;
  /// Names in `settings` that configuration files and KILN_* variables must not override.
  std::set<std::string> locked;
  /// Receives every event of the session. Optional. What it refers to must live as long as the state of the session,
  /// not only as long as the `Session`.
  EventCallback on_event;
  /// Switches `on_event` on and off: while it is false, events cost as little as without a callback. Null means always
  /// on. It must live as long as the state of the session.
  const std::atomic<bool>* on_event_enabled = nullptr;
  /// Trusted keys, in addition to those of the setting `trust.policy`.
  TrustOptions trust;
  /// Source of device memory. Default: the driver's stream-ordered pool. What it refers to must live as long as the
  /// state of the session, not only as long as the `Session`.
  Allocator allocator;
  /// OpenCL context to load into; OpenCL has no current context. If it is not set, the session creates its own context
  /// on the default device when it first needs one.
  OpenClContext opencl;
  /// If true, every `get` or `artifact` of a unit that no `Requirements` declared is recorded, for
  /// `Session::undeclared`.
  bool record_undeclared = false;
  /// If true, events are counted, for `Session::metrics`.
  bool collect_metrics = false;
  /// Maximum number of requested units that the session works on at once. 0 means one per core, while there is memory.
  /// A unit that a caller starts to wait for before the session works on it does not count.
  unsigned max_background_compiles = 0;
};

/// A `get` or `artifact` of a unit that no `Requirements` declared.
struct UndeclaredUse {
  std::string unit;
  std::string entry;   ///< empty if the unit was used as a whole
  std::string caller;  ///< location of the call, as file:line
};

/// The main interface of kiln. A session looks units up in the cache, compiles missing ones in the background, loads
/// them and keeps them in memory. Copies share one state. It ends with the last Session, KernelHandle,
/// Kernel, Stream, Buffer, ExternalCache or cccl::Callable of it.
/// `open` opens no file and no library and starts no thread; the first request does what it needs.
///
/// When memory runs out, functions that return a `Result` return Code::Unavailable and can be called again, a request
/// has no effect, and all other functions throw std::bad_alloc without changing anything.
///
/// Thread-safe.
class KILN_API Session {
 public:
  /// Opens a session with its own state.
  static Result<Session> open(SessionOptions options = {});
  /// Returns a process-wide session for programs that need none of their own. It is never destroyed; its work ends with
  /// the process.
  static Session& shared();

  /// Level 1, bytes. Returns the compiled code of a unit and needs no device, context or driver. Compiles the unit if
  /// no tier has it. Waits at most `wait`.
  Result<Artifact> artifact(const Unit& unit, const Target& target, Wait wait = kForever,
                            Caller caller = Caller::here());
  /// Same as `artifact`; also returns the keys of the artifact and how the session got it.
  Result<ResolvedArtifact> resolve(const Unit& unit, const Target& target, Wait wait = kForever,
                                   Caller caller = Caller::here());
  /// Looks a unit up in all tiers without compiling it. On a miss, compares its inputs with those of earlier builds.
  Result<Explanation> explain(const Unit& unit, const Target& target);
  /// Returns the compile time in milliseconds of the last recorded build of a unit for a target, for progress displays.
  /// Returns no value if no build is recorded.
  std::optional<double> recorded_cost_ms(const Unit& unit, const Target& target);
  /// Waits until everything compiled so far is uploaded to the remote store, at most `wait`. Returns false if
  /// something is left.
  [[nodiscard]] bool wait_for_uploads(Wait wait);

  /// Requests units that will be needed, for every device of the process or for the given target. Returns within
  /// microseconds; the work runs in the background. Repeating a request is free. Without a GPU runtime and without a
  /// target, it does nothing.
  void request(const Requirements& requirements);
  void request(const Units& units);
  void request(const Units& units, const Target& target);
  /// Cancels a request, for every device of the process or for the given target. Queued units are dropped, a compile in
  /// a worker is terminated, and callers that wait for one get Code::Cancelled.
  void cancel(const Units& units);
  void cancel(const Units& units, const Target& target);
  /// Retries failed units. A failure is cached until an input changes or this is called.
  void retry(const Units& units);
  void retry(const Units& units, const Target& target);

  /// Marks the included files of these units as possibly changed, for all targets. It does no work at once. The next
  /// `request`, `get` or `artifact` of such a unit, and the next `get` of its `KernelHandle`, checks the files that the
  /// unit was compiled from. If nothing changed, the kernel stays; otherwise the unit is looked up or compiled again.
  ///
  /// A `Kernel` obtained earlier keeps the old code, which stays loaded as long as it is used. Work
  /// in progress continues for callers that already wait for it, but later calls do not use its result. A queued unit
  /// reads its inputs when its compile starts. A cached failure is discarded. If a capturing stream needs different
  /// code, `get_for_stream` returns Code::Capturing until the kernel was obtained outside the capture.
  void refresh(const Units& units);
  /// Removes everything that the session holds for these units, for all targets. For programs that generate an
  /// unbounded number of units. It cancels them as `cancel` does and frees their sources, their artifacts and, unless a
  /// `KernelHandle` or a `Kernel` holds them, their loaded kernels. Stored cache entries stay.
  ///
  /// A `KernelHandle` and a `Kernel` of such a unit stay usable. A later call starts from the beginning. Released units
  /// are removed from `status().units` and counted in `status().released`.
  void release(const Units& units);

  /// Levels 2 and 3, native handles and launches. Returns a handle to one kernel of the unit. `entry` is one of the
  /// unit's entries, or empty if it has only one.
  [[nodiscard]] KernelHandle handle(const Unit& unit, const std::string& entry = {});
  /// Same as `handle(unit, entry).get(wait)`, for callers that keep no handle.
  Result<Kernel> get(const Unit& unit, const std::string& entry = {}, Wait wait = kForever,
                     Caller caller = Caller::here());
  /// Returns the kernel if an earlier `get` made it ready for every device of the process, otherwise no value. Starts
  /// no work. A unit that was only requested is not ready here before its first `get`, and with devices of different
  /// targets none is. To poll, call `get` with `Wait::poll`.
  [[nodiscard]] std::optional<Kernel> try_get(const Unit& unit, const std::string& entry = {});

  /// Returns the external cache of another compiling system, such as Triton. `system` keeps its keys apart from those
  /// of other systems.
  ExternalCache external_cache(const std::string& system);

  /// Returns the devices of a backend. Opens the driver if one seems to be installed. An error names what is missing.
  Result<std::vector<DeviceInfo>> devices(Backend backend);
  /// Returns true if all devices of a backend are CPUs, as PoCL's are. Opens no driver: if it is not open, the
  /// installed OpenCL drivers decide, and false means that it is not known.
  bool has_only_cpu_devices(Backend backend);
  /// Makes the primary context of a device current in this thread, for programs that have no context. `device` is the
  /// index of the device. OpenCL has no current context: there, it selects the device for all threads.
  Status make_current(Backend backend, std::size_t device = 0);
  /// Creates a stream in the current context, for programs that have none. If this thread has no current CUDA context,
  /// the primary context of the first device becomes current in it and stays so, as with CUDA's runtime. Include
  /// <kiln/stream.hpp> to call it.
  Result<Stream> stream(Backend backend);

  /// Returns a callback that passes an event to this session's trace, metrics and `on_event`, for components outside
  /// kiln that report events. It is empty while the session has no listener that is on. It does not keep the session
  /// alive.
  EventCallback event_callback() const;
  /// Returns a snapshot of all units.
  SessionStatus status() const;
  /// Returns the status and the event counts so far in the Prometheus text format.
  std::string metrics() const;
  /// Returns the undeclared uses so far, if `record_undeclared` is set.
  std::vector<UndeclaredUse> undeclared() const;
  /// Writes the trace file, if the setting `trace` names one. The end of the session writes it too.
  Status write_trace() const;

  struct State;

 private:
  friend class WarmupPlan;
  friend struct detail::SessionAccess;
  explicit Session(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace kiln
