#pragma once

#include <chrono>
#include <cstdint>

#include "runtime/state.hpp"

namespace kiln::runtime {

/// A run as it goes on; for stages, which are parts of it.
struct Dispatch::State {
  State(const Runtime& its_runtime, const Operation& its_operation, const Request& its_request, Decision decided);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// What the thread does in it.
  Work work() const;

  Runtime runtime;
  const Operation& operation;
  const Request request;
  const Backend decided;
  const std::uint64_t number;
  const std::chrono::nanoseconds start;
  Frame frame;
  WorkScope scope;
};

}  // namespace kiln::runtime
