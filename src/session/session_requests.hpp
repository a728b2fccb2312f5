// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include <kiln/session.hpp>

#include "base/mutex.hpp"
#include "engine/engine.hpp"
#include "engine/thread_pool.hpp"
#include "session/drivers.hpp"
#include "session/handle_table.hpp"
#include "session/pending_units.hpp"

namespace kiln {

/// The requests of a session: for a target, or for the devices of this process. Units for devices wait here until the
/// driver of their kind is open, and go to the engine then. Thread-safe.
class SessionRequests {
 public:
  /// The references must outlive the object.
  SessionRequests(Engine& engine, Drivers& drivers, HandleTable& handles, LazyComponents& components,
                  const EventEmitter& emitter);

  /// Returns an id that is unique among all sessions of this process and its ancestors. It changes with every call
  /// after which repeating an earlier request can have an effect.
  std::uint64_t number() const { return number_.load(std::memory_order_relaxed); }

  /// Resolves a request and records it in the profile. Every call of the program that needs a result goes through here;
  /// background requests do not.
  Result<ResolveResultPtr> get(const CompileRequest& request, const Deadline& deadline, Caller caller);
  /// Opens the driver for a kind of units and returns it. An error names what is missing.
  Result<DriverBackend*> open(const std::string& kind, const Deadline& deadline);

  /// Requests units for the devices of this process. Does nothing if there is none.
  void request(const Units& units);
  void request(const Units& units, const Target& target);
  void cancel(const Units& units);
  void cancel(const Units& units, const Target& target);
  void retry(const Units& units);
  void retry(const Units& units, const Target& target);
  /// See `Session`. Both apply to all targets.
  void refresh(const Units& units);
  void release(const Units& units);

  SessionStatus status() const;
  StatusSnapshot snapshot(std::size_t maximum) const;
  /// Ends the thread that opens drivers.
  void stop();

 private:
  void open_requested_drivers();
  void submit_pending() KILN_REQUIRES(mutex_);
  std::vector<CompileRequest> requests_for_devices(const Units& units) const;
  void retry(const std::vector<CompileRequest>& requests);
  /// Assigns a new `number`.
  void renumber();

  Engine& engine_;
  Drivers& drivers_;
  HandleTable& handles_;
  LazyComponents& components_;
  const EventEmitter& emitter_;
  std::atomic<std::uint64_t> number_;
  mutable Mutex mutex_;
  Condition opened_;
  WaitingUnits pending_units_ KILN_GUARDED_BY(mutex_);
  std::unordered_set<std::string> drivers_to_open_ KILN_GUARDED_BY(mutex_);
  ThreadPool driver_opener_;  // last, so that its thread ends before the members that it uses
};

}  // namespace kiln
