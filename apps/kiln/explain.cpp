#include "warm/explain.hpp"

#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/render_json.hpp"
#include "apps/kiln/unit_arguments.hpp"
#include "base/clock.hpp"
#include "session/toolbox.hpp"

namespace kiln::cli {
namespace {

// Digests are told apart by their beginnings; other values are shown whole.
std::string shortened(const std::string& value) { return Digest::from_hex(value) ? value.substr(0, 12) : value; }

std::string difference_text(const Difference& difference) {
  const auto& [input, what, then, now] = difference;
  if (then.empty() && now.empty()) return "differs";
  if (then.empty()) return now == what ? "is new" : "is new: " + shortened(now);
  if (now.empty()) return then == what ? "is gone" : "is gone, was " + shortened(then);
  return "was " + shortened(then) + ", is " + shortened(now);
}

void print_explanation(const ExplainOutcome& outcome, Console& console) {
  const Explanation& explanation = outcome.explanation;
  const std::string subject = outcome.file + " for " + outcome.target + ": ";
  if (explanation.hit && explanation.answer) {
    const Answer& answer = *explanation.answer;
    // What a bundle has need not be for this target, nor by this machine's compiler.
    const std::string made = answer.origin == Origin::Bundle
                                 ? ", for " + answer.artifact.target.name() + " by " + answer.artifact.about.compiler
                                 : "";
    console.print(subject + console.green("hit") + " in " + to_string(answer.origin) + made + ", " +
                  size_text(answer.artifact.bytes.size()) + ", key " + answer.key.hex().substr(0, 12));
    return;
  }
  constexpr std::string_view kMiss = "miss: ";  // said in colour instead
  std::string_view summary = explanation.summary;
  if (summary.starts_with(kMiss)) summary.remove_prefix(kMiss.size());
  std::string text = subject + console.yellow("miss") + (summary.empty() ? "" : ": ") + std::string(summary) + '\n';
  std::vector<std::vector<std::string>> rows;
  for (const Difference& difference : explanation.differences) {
    rows.push_back({difference.input, difference.what, difference_text(difference)});
  }
  text += table_text(rows, "  ");
  if (explanation.nearest) {
    const Build& build = *explanation.nearest;
    const auto age = std::chrono::duration_cast<std::chrono::seconds>(system_clock().wall() - build.built_at);
    text += "  compared with the build of " + age_text(age) + " for " + build.target.name() + ", which took " +
            time_text(build.cost_ms) + " (key " + build.key.hex().substr(0, 12) + ")\n";
  }
  console.print(text);
}

// As `kiln compile` would get it: bundles are asked first, and for that no compiler need be there.
Result<Explanation> explained(Toolbox& toolbox, const Job& job) {
  if (std::optional<Answer> served = toolbox.serve(job.unit, fitted(job.unit, job.target))) {
    Explanation explanation;
    explanation.hit = true;
    explanation.request = served->request;
    explanation.summary = std::string("hit in ") + to_string(served->origin) + ": built for " +
                          served->artifact.target.name() + " by " + served->artifact.about.compiler;
    explanation.answer = std::move(served);
    return explanation;
  }
  const Result<Recipe> recipe = toolbox.recipe(job.unit, job.target);
  if (!recipe) return recipe.error();
  return explain(*recipe, toolbox.parts());
}

}  // namespace

int explain_command(const Arguments& arguments, Console& console) {
  if (!arguments.profile.empty()) return explain_profile_command(arguments, console);
  const Observer observer(console.listener());
  Toolbox toolbox(Config::load({}, observer), observer);
  const Result<std::vector<Job>> jobs = jobs_of(arguments);
  if (!jobs) return report(jobs.error(), console);
  std::vector<ExplainOutcome> outcomes;
  bool all_hit = true;
  for (const Job& job : *jobs) {
    Result<Explanation> explanation = explained(toolbox, job);
    if (!explanation) return report(explanation.error(), console, job.file + " for " + job.target.name());
    outcomes.push_back({job.file, job.target.name(), std::move(*explanation)});
    all_hit = all_hit && outcomes.back().explanation.hit;
  }
  if (arguments.json) {
    console.print(explain_json(outcomes));
  } else {
    for (const ExplainOutcome& outcome : outcomes) print_explanation(outcome, console);
  }
  return arguments.check && !all_hit ? kFailed : kDone;
}

}  // namespace kiln::cli
