// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include <kiln/session.hpp>

#include "base/mutex.hpp"
#include "engine/engine.hpp"
#include "session/drivers.hpp"
#include "session/handle_table.hpp"
#include "session/session_requests.hpp"

namespace kiln {

/// Turns requests into kernels that can be launched: gets results from the engine and loads them into drivers.
/// Thread-safe.
class KernelLoader final : public ResultLoader {
 public:
  /// The references must outlive the object. With `record_undeclared` it records the units that no `declare` named.
  KernelLoader(Engine& engine, SessionRequests& requests, Drivers& drivers, HandleTable& handles,
               const EventEmitter& emitter, bool record_undeclared)
      : engine_(engine), requests_(requests), drivers_(drivers), handles_(handles), emitter_(emitter),
        record_undeclared_(record_undeclared) {}

  /// Returns the kernel of a handle in the calling thread's context. `handle` must belong to this unit, and the caller
  /// must keep it alive. `stream` is null if the caller names no stream.
  Result<const detail::KernelState*> get(KernelHandleState& handle, const Unit& unit, const Deadline& deadline,
                                         const StreamRef* stream, Caller caller);

  /// A unit that is used as a whole rather than by its kernels, loaded in the calling thread's context.
  struct LoadedModule {
    std::shared_ptr<Module> module;
    Device* device = nullptr;  ///< owned by the session
    Target target;             ///< target of the current context
    std::uint64_t flow = 0;
    Origin origin = Origin::Compiled;
  };
  Result<LoadedModule> load_module(const Unit& unit, const Deadline& deadline, Caller caller);

  /// Waits until the units are ready on every device, at most until the deadline. Returns those that are not.
  std::vector<NotReady> wait_for(const Units& units, const Deadline& deadline, Caller caller);

  /// Records units as declared.
  void declare(const Units& units);
  /// Records a use of a unit if it was not declared, once for each unit, entry and caller, up to a limit. `entry` is
  /// empty if the unit is used as a whole.
  void record_undeclared_use(const Unit& unit, const std::string& entry, Caller caller);
  /// Returns the uses of units that were not declared.
  std::vector<UndeclaredUse> undeclared() const;

  Status load(const CompileRequest& request, const ResolveResult& result) override;
  bool can_drop_bytes(const CompileRequest& request, const ResolveResult& result) override;

 private:
  /// Returns the reason why this unit is compiled but cannot be called in this process; empty if it can be.
  std::string uncallable_reason(const Unit& unit);
  /// Returns the result, loaded if the request is for a device.
  Result<ResolveResultPtr> get_loaded(const CompileRequest& request, const Deadline& deadline, Caller caller);
  Result<const detail::KernelState*> prepare_kernel(KernelHandleState& handle, DriverBackend& driver,
                                                    const CompileRequest& request, const Deadline& deadline,
                                                    Caller caller);
  Result<const detail::KernelState*> kernel_of(KernelHandleState& handle, DriverBackend& driver,
                                               const CompileRequest& request, const ResolveResult& result);
  void prepare_in_current_context(const CompileRequest& request, DriverBackend& driver, const Target& target,
                                  const ResolveResult& result, std::uint64_t epoch);
  void emit_load(const CompileRequest& request, const ResolveResult& result, double ms, const Status& outcome) const;

  Engine& engine_;
  SessionRequests& requests_;
  Drivers& drivers_;
  HandleTable& handles_;
  const EventEmitter& emitter_;
  const bool record_undeclared_;
  mutable Mutex mutex_;
  std::unordered_set<Digest> declared_ KILN_GUARDED_BY(mutex_);
  std::vector<UndeclaredUse> undeclared_ KILN_GUARDED_BY(mutex_);
  std::unordered_set<std::string> undeclared_keys_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
