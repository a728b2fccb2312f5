// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <kiln/cccl.hpp>

#include "backends/cccl/cccl_module.hpp"
#include "backends/cccl/temp_storage.hpp"
#include "backends/device.hpp"
#include "events/event_emitter.hpp"

namespace kiln::cccl {

/// The state that copies of a callable share. Constant except for its storage. Thread-safe.
struct Callable::State {
  struct Params {
    std::shared_ptr<const void> owner;  ///< keeps the device alive; first, so that it is destroyed last
    Device* device = nullptr;
    std::shared_ptr<const CcclModule> module;
    Spec spec;      ///< has passed `Spec::validate`
    Target target;  ///< target of the devices that it runs on, as they report it
    std::string unit;
    std::uint64_t flow = 0;
    Origin origin = Origin::Compiled;
    EventEmitter emitter;
  };
  explicit State(Params from);

  Status run(const Call& call);
  Status reserve(const Call& call);
  Status release(StreamRef stream);
  Result<std::size_t> ask(const Call& call) const;
  /// Queries the storage size for 128 items in advance, if that is possible without a call's arguments.
  void warm_up();
  /// Returns true if it was compiled for the current device of the calling thread.
  Result<bool> is_for_here() const;

  const Params params;

 private:
  /// Checks the stream and the device of a call. Returns the calling thread's context.
  Result<CurrentContext> check(const Call& call) const;
  Status put_on_stream(const Call& call);
  /// Calls `run` with storage for a call on its stream.
  Status with_own_storage(const Call& call, const CurrentContext& place, const TempStorage::Run& run);
  Status with_callers_storage(const Call& call) const;
  TempStorage::Query query_for(const Call& call) const;
  void emit(const Call& call, double ms, const Status& outcome) const;

  const bool takes_storage_;
  TempStorage storage_;
};

/// Makes a callable of its state.
struct detail::CallableAccess {
  static Callable make(std::shared_ptr<Callable::State> state) { return Callable(std::move(state)); }
};

}  // namespace kiln::cccl
