#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/device_info.hpp>
#include <kiln/event.hpp>
#include <kiln/export.hpp>
#include <kiln/foreign.hpp>
#include <kiln/kernel.hpp>
#include <kiln/needs.hpp>
#include <kiln/result.hpp>
#include <kiln/status.hpp>
#include <kiln/target.hpp>
#include <kiln/unit.hpp>

namespace kiln {

namespace detail {
struct SessionAccess;
}

/// An OpenCL context of the caller's, for a session to work in. Both or neither.
struct OpenClContext {
  void* context = nullptr;  ///< cl_context
  void* device = nullptr;   ///< cl_device_id
};

/// Whose bundles and whose entries of remote stores a program believes, besides those that the file of the setting
/// `trust` names: docs/trust.md. Bundles that are linked into the program need nobody's word.
struct Trust {
  struct Key {
    std::string text;                     ///< as `kiln key show` prints it
    std::vector<std::string> namespaces;  ///< "acme/vision", "acme/*", "*"
  };
  std::vector<Key> keys;
  /// By namespace: what is older is refused, whoever signed it.
  std::map<std::string, std::uint64_t> minimum_epochs;
  /// By live namespace ("acme/live", "acme/live/*", never "*"): for how many days, 1 to 365, what a certified host
  /// published there is believed.
  std::map<std::string, std::uint64_t> live;
  /// Keys that are believed no longer, nor the hosts that they certified: as `kiln key show` prints them, or their ids.
  std::vector<std::string> revoked;
};

/// How a program sets kiln up. Everything has a default; `docs/configuration.md` lists the settings.
struct SessionOptions {
  /// By name, as in a configuration file: {"cache.dir", "/var/cache/app"}. Weaker than files and KILN_* variables, so
  /// that whoever runs the program has the last word …
  std::map<std::string, std::string> settings;
  /// … except for the names given here.
  std::set<std::string> locked;
  EventCallback on_event;
  Trust trust;
  /// Where device memory comes from; by default the driver's stream-ordered pool.
  Allocator allocator;
  /// OpenCL has no current context: the one to load into. Without it the session makes one of its own, at the first
  /// need and on the default device.
  OpenClContext opencl;
  /// Keep account of every `get` of a unit that no Needs had declared.
  bool record_undeclared = false;
  /// Count events, for `Session::metrics`.
  bool metrics = false;
};

/// A use that no Needs had declared.
struct UndeclaredUse {
  std::string unit;
  std::string entry;
  std::string caller;  ///< file:line
};

/// kiln in a program: asks the cache, compiles what is not there in the background, loads it, remembers it. Copies
/// share one state, which ends with the last of them and of its handles. Any thread. Opening it opens no file and no
/// library and starts no thread; the first request does what it needs.
///
/// Out of memory, what returns a Result returns Code::Unavailable and can be called again; a request is as if it had
/// not been made; the other functions throw std::bad_alloc and have changed nothing.
class KILN_API Session {
 public:
  static Result<Session> open(SessionOptions options = {});
  /// The session of those who want none of their own. It is never destroyed; what it runs ends when the process does.
  static Session& shared();

  /// Level 1, bytes: no device, no context and no driver needed. Compiles where no tier has them; waits at most
  /// `limit`.
  Result<Artifact> artifact(const Unit& unit, const Target& target, std::chrono::nanoseconds limit = kForever,
                            Caller caller = Caller::here());

  /// Says what will be needed, for every device of the process or for the given target. Returns in microseconds and
  /// does the work in the background. Asking again is free. Where there is no GPU runtime it does nothing, unless a
  /// target is given.
  void request(const Needs& needs);
  void request(const Units& units);
  void request(const Units& units, const Target& target);
  /// Takes a request back: what has not begun will not, a compile in a worker is ended, whoever waits for it gets
  /// Code::Cancelled. As for a request, it is for every device of the process or for the given target.
  void cancel(const Units& units);
  void cancel(const Units& units, const Target& target);
  /// Tries again what failed: a failure is remembered until an input changes or this is called.
  void retry(const Units& units);
  void retry(const Units& units, const Target& target);

  /// Levels 2 and 3, native handles and launches. The entry is a name among the unit's; empty where it has only one.
  Handle handle(const Unit& unit, const std::string& entry = {});
  /// As `handle(unit, entry).get(limit)`, for those who keep no handle.
  Result<Kernel> get(const Unit& unit, const std::string& entry = {}, std::chrono::nanoseconds limit = kForever,
                     Caller caller = Caller::here());

  /// The cache of another system that compiles, such as Triton, by the name that keeps its keys apart.
  ForeignCache foreign(const std::string& system);

  /// The devices of a kind, "cuda" or "opencl". Opens the driver, where there seems to be one; an error says what is
  /// missing.
  Result<std::vector<DeviceInfo>> devices(const std::string& kind);
  /// For programs that have no context: makes the primary one of a device (by its number) current in this thread.
  /// `kind` is "cuda" or "opencl".
  Status make_current(const std::string& kind, std::size_t device = 0);
  /// For programs that have no stream: one in the current context.
  Result<Stream> stream(const std::string& kind);

  /// Tells this session's listeners (its trace, its counts, `on_event`) of an event that somebody else has to tell;
  /// empty where nobody listens. It does not keep the session.
  EventCallback listeners() const;
  /// All units at one moment.
  SessionStatus status() const;
  /// The same and the counts of events so far, as Prometheus reads them.
  std::string metrics() const;
  /// What was used and not declared, since `record_undeclared`.
  std::vector<UndeclaredUse> undeclared() const;
  /// Writes the trace file, where the setting `trace` names one. The end of the session does too.
  Status write_trace() const;

  struct State;

 private:
  friend class Plan;
  friend struct detail::SessionAccess;
  explicit Session(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace kiln
