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
    console.print(subject + console.green("hit") + " in " + to_string(answer.origin) + ", " +
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

}  // namespace

int explain_command(const Arguments& arguments, Console& console) {
  if (!arguments.profile.empty()) return explain_profile_command(arguments, console);
  const Observer observer(console.listener());
  Toolbox toolbox(Config::load({}, observer), observer);
  const Result<std::vector<Job>> jobs = jobs_of(arguments);
  if (!jobs) {
    console.error(jobs.error());
    return exit_code_of(jobs.error().code);
  }
  std::vector<ExplainOutcome> outcomes;
  bool all_hit = true;
  for (const Job& job : *jobs) {
    const Result<Recipe> recipe = toolbox.recipe(job.unit, job.target);
    if (!recipe) {
      console.error(recipe.error(), job.file + " for " + job.target.name());
      return exit_code_of(recipe.error().code);
    }
    outcomes.push_back({job.file, job.target.name(), explain(*recipe, toolbox.parts())});
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
