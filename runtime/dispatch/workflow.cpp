// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "runtime/dispatch/runtime_state.hpp"

namespace kiln::runtime {

struct Workflow::State {
  State(const Runtime& its_runtime, const char* name, std::vector<const Operation*> its_operations, Decision decided)
      : runtime(its_runtime), operations(std::move(its_operations)), frame(*runtime.state(), name, std::move(decided)) {
    place();
  }
  /// Makes this decision apply to all following work of the thread.
  void place() {
    OperationContext work;
    work.operation = frame.name();
    work.workflow = frame.decision.id;
    work.rows = frame.decision.rows;
    work.residency = frame.decision.residency;
    scope.reset();
    scope.emplace(std::move(work));
  }

  const Runtime runtime;
  const std::vector<const Operation*> operations;
  DecisionScope frame;
  std::optional<OperationScope> scope;
};

Workflow::Workflow(std::unique_ptr<State> state) : state_(std::move(state)) {}
Workflow::Workflow(Workflow&& other) noexcept = default;
Workflow::~Workflow() = default;

const Decision& Workflow::decision() const { return state_->frame.decision; }

Result<Workflow> Workflow::begin(Runtime& runtime, const char* name, std::vector<const Operation*> operations,
                                 const DispatchRequest& request) {
  if (operations.empty()) {
    return make_error(Code::InvalidArgument, std::string("the workflow ") + name + " has no operations");
  }
  Runtime::State& state = *runtime.state();
  const DecisionScope* around = DecisionScope::current(state);
  auto decision =
      around != nullptr ? state.inherit(*around, name, operations, request) : state.decide(name, operations, request);
  if (!decision) return std::move(decision).error();
  return Workflow(std::make_unique<State>(runtime, name, std::move(operations), *std::move(decision)));
}

Status Workflow::next_chunk(const DispatchRequest& request) {
  DecisionScope& frame = state_->frame;
  if (!frame.is_innermost()) {
    return make_error(Code::InvalidArgument,
                      "a chunk of the workflow " + frame.name() + " must end between its runs, not inside a run");
  }
  if (frame.is_nested()) return {};
  auto decision = state_->runtime.state()->decide(frame.name().c_str(), state_->operations, request);
  if (!decision) return std::move(decision).error();
  frame.flush_stages();
  frame.decision = *std::move(decision);
  state_->place();
  return {};
}

}  // namespace kiln::runtime
