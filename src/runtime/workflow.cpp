#include <optional>
#include <utility>

#include "base/error.hpp"
#include "runtime/state.hpp"

namespace kiln::runtime {

struct Workflow::State {
  State(const Runtime& its_runtime, const char* name, std::vector<const Operation*> its_operations, Decision decided)
      : runtime(its_runtime), operations(std::move(its_operations)), frame(*runtime.state(), name, std::move(decided)) {
    place();
  }
  /// What the thread does from here on it does by this decision.
  void place() {
    Work work;
    work.operation = frame.name();
    work.workflow = frame.decision.number;
    work.rows = frame.decision.rows;
    work.residency = frame.decision.residency;
    scope.reset();
    scope.emplace(std::move(work));
  }

  const Runtime runtime;
  const std::vector<const Operation*> operations;
  Frame frame;
  std::optional<WorkScope> scope;
};

Workflow::Workflow(std::unique_ptr<State> state) : state_(std::move(state)) {}
Workflow::Workflow(Workflow&& other) noexcept = default;
Workflow::~Workflow() = default;

const Decision& Workflow::decision() const { return state_->frame.decision; }

Result<Workflow> Workflow::begin(Runtime& runtime, const char* name, std::initializer_list<const Operation*> operations,
                                 const Request& request) {
  if (operations.size() == 0) {
    return failure(Code::InvalidArgument, std::string("the workflow ") + name + " names no operation to decide for");
  }
  const std::vector<const Operation*> all(operations);
  Runtime::State& state = *runtime.state();
  const Frame* around = Frame::current(state);
  auto decision = around != nullptr ? state.follow(*around, name, all, request) : state.decide(name, all, request);
  if (!decision) return std::move(decision).error();
  return Workflow(std::make_unique<State>(runtime, name, all, *std::move(decision)));
}

Status Workflow::next_chunk(const Request& request) {
  Frame& frame = state_->frame;
  if (!frame.is_innermost()) {
    return failure(Code::InvalidArgument,
                   "a chunk of the workflow " + frame.name() + " ends between its runs, not inside of one");
  }
  if (frame.is_inside()) return {};
  auto decision = state_->runtime.state()->decide(frame.name().c_str(), state_->operations, request);
  if (!decision) return std::move(decision).error();
  frame.hand_on_stages();
  frame.decision = *std::move(decision);
  state_->place();
  return {};
}

}  // namespace kiln::runtime
