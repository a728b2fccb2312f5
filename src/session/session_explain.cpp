// SPDX-License-Identifier: Apache-2.0
// The functions of a session that explain a hit or a miss, or read what earlier builds recorded.
#include "engine/explain.hpp"

#include <kiln/session.hpp>

#include <algorithm>

#include "base/catch_to_error.hpp"
#include "base/clock.hpp"
#include "session/session_impl.hpp"

namespace kiln {
namespace {

Explanation explain_bundle_hit(ResolveResult served) {
  Explanation explanation;
  explanation.hit = true;
  explanation.request = served.request;
  explanation.summary = std::string("hit in ") + to_string(served.origin) + ": built for " +
                        served.artifact.target.name() + " by " + served.artifact.metadata.compiler;
  explanation.artifact = resolved_artifact(std::move(served));
  return explanation;
}

}  // namespace

// Looks up in the order of a request: bundles first, which need no compiler.
Result<Explanation> Session::explain(const Unit& unit, const Target& target) {
  return catch_to_error([&]() -> Result<Explanation> {
    Components& components = state_->impl().components();
    auto prebuilt = components.resolver().find_prebuilt({unit, effective_target(unit, target)}, {});
    if (prebuilt && *prebuilt) return explain_bundle_hit(**std::move(prebuilt));
    const Result<Recipe> recipe = components.recipe(unit, target, {});
    if (!recipe) return recipe.error();
    return kiln::explain(*recipe, components.params(), {});
  });
}

std::optional<double> Session::recorded_cost_ms(const Unit& unit, const Target& target) {
  BuildHistory* const history = state_->impl().components().params().history;
  if (history == nullptr) return std::nullopt;
  const Result<std::vector<Build>> builds = history->builds(unit.kind(), unit.name());
  if (!builds) return std::nullopt;
  const Target built = effective_target(unit, target);
  const auto last =
      std::find_if(builds->begin(), builds->end(), [&](const Build& build) { return build.target == built; });
  if (last == builds->end() || last->cost_ms <= 0) return std::nullopt;
  return last->cost_ms;
}

bool Session::wait_for_uploads(Wait wait) {
  constexpr std::chrono::nanoseconds kPollInterval = std::chrono::milliseconds(50);
  Components& components = state_->impl().components();
  CallDeadline deadline(wait);
  if (deadline.interrupt() == nullptr) return components.drain(wait.timeout());
  while (!components.drain(std::min(deadline.remaining(), kPollInterval))) {
    if (deadline.interrupt()->poll() || deadline.remaining().count() == 0) return false;
  }
  return true;
}

}  // namespace kiln
