// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include <kiln/session.hpp>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/compile/batch.hpp"
#include "apps/kiln/compile/unit_arguments.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/render_json.hpp"
#include "base/error.hpp"

namespace kiln::cli {
namespace {

// Number of differences that the text shows: a missing include directory makes one for each of its headers.
constexpr std::size_t kMaxDifferences = 20;

// Shortens a digest to its prefix; returns other values unchanged.
std::string shortened(const std::string& value) { return Digest::from_hex(value) ? value.substr(0, 12) : value; }

std::string difference_text(const InputDifference& difference) {
  const auto& [input, what, then, now] = difference;
  if (then.empty() && now.empty()) return "differs";
  if (then.empty()) return now == what ? "is new" : "is new: " + shortened(now);
  if (now.empty()) return then == what ? "is removed" : "is removed, was " + shortened(then);
  return "was " + shortened(then) + ", is " + shortened(now);
}

void print_explanation(const ExplainOutcome& outcome, Console& console) {
  const Explanation& explanation = outcome.explanation;
  const std::string subject = outcome.file + " for " + outcome.target + ": ";
  if (explanation.hit && explanation.artifact) {
    const ResolvedArtifact& answer = *explanation.artifact;
    // An artifact from a bundle may be for a compatible target and from another compiler.
    const std::string made = answer.origin == Origin::Bundle
                                 ? ", for " + answer.artifact.target.name() + " by " + answer.artifact.metadata.compiler
                                 : "";
    console.print(subject + console.green("hit") + " in " + to_string(answer.origin) + made + ", " +
                  format_bytes(answer.artifact.bytes.size()) + ", key " + answer.key.hex().substr(0, 12));
    return;
  }
  constexpr std::string_view kMiss = "miss: ";  // printed in color instead
  std::string_view summary = explanation.summary;
  if (summary.starts_with(kMiss)) summary.remove_prefix(kMiss.size());
  Text text = subject + console.yellow("miss") + (summary.empty() ? "" : ": ") + std::string(summary) + '\n';
  std::vector<std::vector<std::string>> rows;
  for (const InputDifference& difference : explanation.differences) {
    if (rows.size() == kMaxDifferences) break;
    rows.push_back({difference.input, difference.name, difference_text(difference)});
  }
  text += table_text(rows, "  ");
  if (const std::size_t more = explanation.differences.size() - rows.size(); more != 0) {
    text += "  … and " + std::to_string(more) + " more; --json prints all\n";
  }
  if (explanation.nearest) {
    const Explanation::EarlierBuild& build = *explanation.nearest;
    const auto age =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now() - build.built_at);
    text += "  compared with the build of " + age_text(age) + " for " + build.target.name() + ", which took " +
            time_text(build.cost_ms) + " (key " + build.key.hex().substr(0, 12) + ")\n";
  }
  console.print(text);
}

}  // namespace

int explain_command(const Arguments& arguments, Console& console) {
  if (!arguments.external.empty()) {
    if (arguments.files.empty() && arguments.profile.empty()) return jit_explain_command(arguments, console);
    return report(make_error(Code::InvalidArgument, "--external takes no files and no profile; see 'kiln jit explain'"),
                  console);
  }
  if (!arguments.profile.empty()) return explain_profile_command(arguments, console);
  const Result<std::vector<Job>> jobs = jobs_of(arguments);
  if (!jobs) return report(jobs.error(), console);
  Result<Session> session = Session::open(session_options(arguments, console));
  if (!session) return report(session.error(), console);
  std::vector<ExplainOutcome> outcomes;
  bool all_hit = true;
  for (const Job& job : *jobs) {
    Result<Explanation> explanation = session->explain(job.unit, job.target);
    if (!explanation) return report(explanation.error(), console, job.file + " for " + job.target.name());
    outcomes.push_back({job.file, job.target.name(), std::move(*explanation)});
    all_hit = all_hit && outcomes.back().explanation.hit;
  }
  if (arguments.json) {
    console.print(explain_json(outcomes));
  } else {
    for (const ExplainOutcome& outcome : outcomes) print_explanation(outcome, console);
  }
  return arguments.check && !all_hit ? kFailed : kSuccess;
}

}  // namespace kiln::cli
