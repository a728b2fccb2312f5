// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <kiln/runtime/runtime.hpp>

namespace kiln::runtime {

/// The scope of a decision on one thread: a workflow, or a run whose nested calls inherit its decision. Scopes nest;
/// one that ends before an inner scope is taken out of the chain. Neither copied nor moved. Not thread-safe.
class DecisionScope {
 public:
  /// Maximum number of stages that are recorded per scope.
  static constexpr std::size_t kMaxStages = 1000;

  DecisionScope(Runtime::State& runtime, std::string name, Decision decided);
  ~DecisionScope();
  DecisionScope(const DecisionScope&) = delete;
  DecisionScope& operator=(const DecisionScope&) = delete;

  /// Returns the innermost scope of this runtime on the calling thread; null if there is none.
  static DecisionScope* current(const Runtime::State& runtime);

  bool is_innermost() const;
  /// Returns true if this scope is nested in another one of the same runtime and inherits its decision.
  bool is_nested() const { return enclosing(outer_, runtime_) != nullptr; }
  const std::string& name() const { return name_; }
  void add(StageTime stage);
  /// Moves the recorded stages to the enclosing scope, or to the runtime as the last finished stages.
  void flush_stages();

  Decision decision;

 private:
  /// Returns the first scope of this runtime from `frame` outward; null if there is none.
  static DecisionScope* enclosing(DecisionScope* frame, const Runtime::State& runtime);

  Runtime::State& runtime_;
  const std::string name_;
  DecisionScope* outer_;  // enclosing scope of any runtime
  std::vector<StageTime> stages_;
};

}  // namespace kiln::runtime
