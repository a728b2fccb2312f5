// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <future>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "engine_model.hpp"
#include "support/fakes/scripted_work.hpp"
#include "support/fakes/stepped_clock.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/sanitizer.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using Kind = Step::Kind;

constexpr const char* kKinds[] = {"request", "request_waited", "get",  "get_limited", "get_now", "cancel", "retry",
                                  "forget",  "change",         "time", "succeed",     "fail",    "stop"};

std::string text(const std::vector<Step>& steps) {
  std::string all;
  for (const Step& step : steps) {
    all += std::string(kKinds[static_cast<std::size_t>(step.kind)]) + " " + std::to_string(step.which) + "\n";
  }
  return all;
}

// Applies the same steps to an engine and to the model, and compares them after each step.
class Comparison {
 public:
  explicit Comparison(std::chrono::milliseconds hang_timeout)
      : hang_timeout_(hang_timeout), engine_(work_.params({}, clock_), {.max_threads = 1}) {
    work_.otherwise({.held = true});
    for (std::size_t which = 0; which < EngineModel::kOrders; ++which) {
      orders_.push_back(ScriptedWork::request(name_of(which)));
    }
  }
  // Stops the engine before the gets, which wait for it.
  ~Comparison() { engine_.stop(); }
  Comparison(const Comparison&) = delete;
  Comparison& operator=(const Comparison&) = delete;

  /// Returns the difference after this step, or nothing if they agree.
  std::optional<std::string> apply(Step step) {
    const bool ends = step.kind == Kind::Succeed || step.kind == Kind::Fail;
    if (ends && !model_.running().contains(step.which)) return std::nullopt;
    model_.apply(step);
    act(step);
    std::string difference;
    const bool agreed = eventually([&] { return (difference = compare()).empty(); }, hang_timeout_);
    // Later compiles of the unit are held again.
    if (ends) work_.when(name_of(step.which), {.held = true});
    if (agreed) return std::nullopt;
    return difference;
  }

 private:
  static std::string name_of(std::size_t which) { return std::string(1, static_cast<char>('a' + which)); }

  void act(Step step) {
    const CompileRequest& order = orders_[step.which];
    // Equal content in a new object, as from a caller that did not keep the unit.
    const std::vector<CompileRequest> equal = {ScriptedWork::request(name_of(step.which))};
    switch (step.kind) {
      case Kind::Request: engine_.request({&order, 1}); break;
      case Kind::RequestWaited: engine_.request({&order, 1}, Priority::Foreground); break;
      case Kind::Get: get(order, kForever); break;
      case Kind::GetLimited: get(order, 5ms); break;
      case Kind::GetNow: get(order, 0ms); break;
      case Kind::Cancel: engine_.cancel(equal); break;
      case Kind::Retry: engine_.retry(equal); break;
      case Kind::Forget: engine_.forget(equal[0]); break;
      case Kind::Change: work_.inputs_changed(name_of(step.which), model_.changed(step.which)); break;
      case Kind::Time: clock_.advance(3ms); break;
      case Kind::Succeed: work_.when(name_of(step.which), {}); break;
      case Kind::Fail: work_.when(name_of(step.which), {.error = ScriptedWork::rejection()}); break;
      case Kind::Stop: engine_.stop(); break;
    }
  }

  void get(const CompileRequest& order, std::chrono::nanoseconds timeout) {
    gets_.push_back(std::async(std::launch::async, [this, order, timeout]() -> std::string {
      const auto got = engine_.get(order, timeout);
      return got ? "ok" : to_string(got.error().code);
    }));
    outcomes_.emplace_back();
  }

  std::string compare() {
    for (std::size_t i = 0; i < gets_.size(); ++i) {
      if (outcomes_[i].empty() && gets_[i].wait_for(0s) == std::future_status::ready) outcomes_[i] = gets_[i].get();
      if (outcomes_[i] != model_.outcomes()[i]) {
        return "get " + std::to_string(i) + " is '" + outcomes_[i] + "', should be '" + model_.outcomes()[i] + "'";
      }
    }
    if (clock_.waiting() != model_.waiting()) return "the number of waiting gets differs";
    std::map<std::string, UnitStatus::State> states;
    for (const UnitStatus& unit : engine_.status().units) {
      if (!states.emplace(unit.unit, unit.state).second) return unit.unit + " is listed twice";
    }
    for (std::size_t which = 0; which < EngineModel::kOrders; ++which) {
      const auto found = states.find(name_of(which));
      const UnitStatus::State is = found == states.end() ? UnitStatus::State::Cancelled : found->second;
      const UnitStatus::State expected = expected_state(model_.state(which));
      if (is != expected) return name_of(which) + " is " + to_string(is) + ", should be " + to_string(expected);
      const bool ready = engine_.ready(orders_[which]) != nullptr;
      if (ready != (expected == UnitStatus::State::Ready))
        return name_of(which) + " is ready in only one of index and status";
      if (work_.compiles(orders_[which]) != model_.compiles(which)) {
        return name_of(which) + " was compiled " + std::to_string(work_.compiles(orders_[which])) + " times";
      }
    }
    return {};
  }

  static UnitStatus::State expected_state(EngineModel::State state) {
    switch (state) {
      case EngineModel::State::Nothing: return UnitStatus::State::Cancelled;
      case EngineModel::State::Queued: return UnitStatus::State::Queued;
      case EngineModel::State::Running: return UnitStatus::State::Running;
      case EngineModel::State::Ready: return UnitStatus::State::Ready;
      case EngineModel::State::Failed: break;
    }
    return UnitStatus::State::Failed;
  }

  const std::chrono::milliseconds hang_timeout_;
  SteppedClock clock_;
  ScriptedWork work_;
  EngineModel model_;
  std::vector<CompileRequest> orders_;
  std::vector<std::string> outcomes_;  // of the gets that have ended
  ScriptedEngine engine_;
  std::vector<std::future<std::string>> gets_;
};

struct Divergence {
  std::vector<Step> steps;  // the last step shows the divergence
  std::string what;
};

std::optional<Divergence> diverges(const std::vector<Step>& steps, std::chrono::milliseconds hang_timeout) {
  Comparison comparison(hang_timeout);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (auto what = comparison.apply(steps[i])) return Divergence{{steps.begin(), steps.begin() + i + 1}, *what};
  }
  return std::nullopt;
}

// Removes every step that is not needed for the divergence.
Divergence shrunk(Divergence found) {
  for (std::size_t i = found.steps.size(); i-- > 0;) {
    std::vector<Step> fewer = found.steps;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (auto still = diverges(fewer, 300ms)) found = *still;
    i = std::min(i, found.steps.size());
  }
  return found;
}

std::vector<Step> random_steps(std::mt19937_64& random) {
  std::vector<Step> steps(5 + random() % 30);
  for (Step& step : steps) {
    // Every started compile takes one step to end. Stopping the engine is rare.
    const std::uint64_t chance = random() % 100;
    step.kind = chance < 20   ? Kind::Succeed
                : chance < 30 ? Kind::Fail
                : chance < 32 ? Kind::Stop
                              : static_cast<Kind>(random() % static_cast<std::uint64_t>(Kind::Succeed));
    step.which = random() % EngineModel::kOrders;
  }
  return steps;
}

TEST(EngineModel, EngineMatchesModelForRandomSteps) {
  constexpr std::uint64_t kSequences = kThreadSanitizer ? 200 : 1000;
  std::size_t steps_done = 0;
  for (std::uint64_t seed = 1; seed <= kSequences; ++seed) {
    std::mt19937_64 random(seed);
    const std::vector<Step> steps = random_steps(random);
    steps_done += steps.size();
    if (const auto found = diverges(steps, 10s)) {
      const Divergence minimum = shrunk(*found);
      FAIL() << "seed " << seed << ": " << found->what << "; minimized: " << minimum.what << " after\n"
             << text(minimum.steps);
    }
  }
  std::printf("figure: engine compared with its model: %zu steps in %llu sequences, no divergence\n", steps_done,
              static_cast<unsigned long long>(kSequences));
}

}  // namespace
}  // namespace kiln::test
