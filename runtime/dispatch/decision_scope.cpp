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
    : decision(std::move(decided)), runtime_(runtime), name_(std::move(name)), outer_(innermost),
      outer_same_(current(runtime)) {
  innermost = this;
}

DecisionScope::~DecisionScope() {
  flush_stages();
  innermost = outer_;
}

DecisionScope* DecisionScope::current(const Runtime::State& runtime) {
  DecisionScope* frame = innermost;
  while (frame != nullptr && &frame->runtime_ != &runtime) frame = frame->outer_;
  return frame;
}

bool DecisionScope::is_innermost() const { return innermost == this; }

void DecisionScope::add(StageTime stage) {
  if (stages_.size() < kMaxStages) stages_.push_back(std::move(stage));
}

void DecisionScope::flush_stages() {
  std::vector<StageTime> stages = std::exchange(stages_, {});
  if (outer_same_ != nullptr) {
    for (StageTime& stage : stages) outer_same_->add(std::move(stage));
    return;
  }
  const MutexLock lock(runtime_.mutex);
  runtime_.last_stages = std::move(stages);
}

}  // namespace kiln::runtime
