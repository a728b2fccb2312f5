// SPDX-License-Identifier: Apache-2.0
#include "runtime/dispatch/decision_scope.hpp"

#include <utility>

#include "runtime/dispatch/runtime_state.hpp"

namespace kiln::runtime {
namespace {

// Thread-local for the same reason as `OperationScope`: the application's own code runs between the workflow and its
// operations.
thread_local DecisionScope* innermost = nullptr;

}  // namespace

DecisionScope::DecisionScope(Runtime::State& runtime, std::string name, Decision decided)
    : decision(std::move(decided)), runtime_(runtime), name_(std::move(name)), outer_(std::exchange(innermost, this)) {}

DecisionScope::~DecisionScope() {
  flush_stages();
  DecisionScope** link = &innermost;
  while (*link != nullptr && *link != this) link = &(*link)->outer_;
  if (*link == this) *link = outer_;
}

DecisionScope* DecisionScope::current(const Runtime::State& runtime) { return enclosing(innermost, runtime); }

DecisionScope* DecisionScope::enclosing(DecisionScope* frame, const Runtime::State& runtime) {
  while (frame != nullptr && &frame->runtime_ != &runtime) frame = frame->outer_;
  return frame;
}

bool DecisionScope::is_innermost() const { return innermost == this; }

void DecisionScope::add(StageTime stage) {
  if (stages_.size() < kMaxStages) stages_.push_back(std::move(stage));
}

void DecisionScope::flush_stages() {
  std::vector<StageTime> stages = std::exchange(stages_, {});
  if (DecisionScope* const outer = enclosing(outer_, runtime_)) {
    for (StageTime& stage : stages) outer->add(std::move(stage));
    return;
  }
  const MutexLock lock(runtime_.mutex);
  runtime_.last_stages = std::move(stages);
}

}  // namespace kiln::runtime
