#pragma once

#include <vector>

#include <kiln/runtime/runtime.hpp>

namespace kiln::runtime {

/// A workflow, or a run that is one for what it calls, for as long as it lasts: on one thread, inside of those that
/// began before it. At one address.
class Frame {
 public:
  /// Stages that are remembered of one.
  static constexpr std::size_t kMostStages = 1000;

  Frame(Runtime::State& runtime, std::string name, Decision decided);
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  /// The innermost of this runtime on the calling thread; null where there is none.
  static Frame* current(const Runtime::State& runtime);

  bool is_innermost() const;
  /// Whether it is inside of another of the same runtime, whose decision it follows.
  bool is_inside() const { return outer_same_ != nullptr; }
  const std::string& name() const { return name_; }
  void add(StageTime stage);
  /// What was added goes to the one around it, or to the runtime as what ended last.
  void hand_on_stages();

  Decision decision;

 private:
  Runtime::State& runtime_;
  const std::string name_;
  Frame* const outer_;       // of any runtime
  Frame* const outer_same_;  // of this one
  std::vector<StageTime> stages_;
};

}  // namespace kiln::runtime
