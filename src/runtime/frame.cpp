#include "runtime/frame.hpp"

#include <utility>

#include "runtime/state.hpp"

namespace kiln::runtime {
namespace {

thread_local Frame* innermost = nullptr;

}  // namespace

Frame::Frame(Runtime::State& runtime, std::string name, Decision decided)
    : decision(std::move(decided)), runtime_(runtime), name_(std::move(name)), outer_(innermost),
      outer_same_(current(runtime)) {
  innermost = this;
}

Frame::~Frame() {
  hand_on_stages();
  innermost = outer_;
}

Frame* Frame::current(const Runtime::State& runtime) {
  Frame* frame = innermost;
  while (frame != nullptr && &frame->runtime_ != &runtime) frame = frame->outer_;
  return frame;
}

bool Frame::is_innermost() const { return innermost == this; }

void Frame::add(StageTime stage) {
  if (stages_.size() < kMostStages) stages_.push_back(std::move(stage));
}

void Frame::hand_on_stages() {
  std::vector<StageTime> stages = std::exchange(stages_, {});
  if (outer_same_ != nullptr) {
    for (StageTime& stage : stages) outer_same_->add(std::move(stage));
    return;
  }
  const MutexLock lock(runtime_.mutex);
  runtime_.last_stages = std::move(stages);
}

}  // namespace kiln::runtime
