// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "runtime/dispatch/runtime_state.hpp"

namespace kiln::runtime {

/// A running operation. Its stages refer to it. Not thread-safe.
struct Dispatch::State {
  State(const Runtime& its_runtime, const Operation& its_operation, const DispatchRequest& its_request,
        Decision decided);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Returns the operation context of the thread for this run.
  OperationContext work() const;

  Runtime runtime;
  const Operation& operation;
  const DispatchRequest request;
  const Backend decided;
  const std::uint64_t number;
  const std::chrono::nanoseconds start;
  DecisionScope frame;
  OperationScope scope;
};

}  // namespace kiln::runtime
