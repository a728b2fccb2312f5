// SPDX-License-Identifier: Apache-2.0
// kiln explain --profile: lists the requested units that the bundles do not contain.
#include <algorithm>
#include <set>

#include "apps/kiln/bundle/bundle_files.hpp"
#include "apps/kiln/bundle/render_bundle_json.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/compile/profile_match.hpp"
#include "apps/kiln/exit_code.hpp"
#include "base/error.hpp"

namespace kiln::cli {
namespace {

std::string served_text(const Target& made, const Target& wanted) {
  if (made == wanted) return "exact";
  const char* what = made.form == Form::Ptx ? " (PTX) for " : " for ";
  return made.name() + what + wanted.name();
}

class ProfileChecker {
 public:
  ProfileChecker(const std::vector<OpenBundle>& bundles, Console& console) : bundles_(bundles), console_(console) {
    for (const OpenBundle& open : bundles) {
      const Result<BundleDescription> description = open.bundle->description();
      if (!description) continue;
      for (const BundleDescription::Artifact& artifact : description->artifacts) names_.insert(artifact.unit);
    }
  }

  ProfileResult answer(const ProfileEntry& asked) const;

 private:
  std::string missing_reason(const ProfileEntry& asked) const;

  const std::vector<OpenBundle>& bundles_;
  Console& console_;
  std::set<std::string> names_;  // unit names in the bundles
};

// Returns the architectures that the bundles have for the unit instead, or that the unit is unknown.
std::string ProfileChecker::missing_reason(const ProfileEntry& asked) const {
  for (const OpenBundle& open : bundles_) {
    const Result<std::vector<Target>> targets = open.bundle->targets(asked.key);
    if (targets && !targets->empty()) {
      return open.path + " has it for " + join_strings(*targets, &Target::name);
    }
  }
  const bool named = names_.contains(asked.unit);
  return named ? std::string("the unit with this name ") + kDifferentUnit : "the unit is unknown";
}

ProfileResult ProfileChecker::answer(const ProfileEntry& asked) const {
  for (const OpenBundle& open : bundles_) {
    const Result<std::optional<Bundle::Match>> found = open.bundle->find(asked.key, asked.target);
    if (!found) console_.warn(open.path + ": " + found.error().message);
    if (!found || !*found) continue;
    const Target& made = (*found)->artifact.target;
    return {asked, open.path, made, served_text(made, asked.target)};
  }
  return {asked, {}, std::nullopt, missing_reason(asked)};
}

void print_answers(const std::vector<ProfileResult>& answers, Console& console) {
  std::vector<std::vector<std::string>> rows;
  for (const ProfileResult& answer : answers) {
    const bool served = !answer.bundle.empty();
    rows.push_back({printable(answer.asked.unit), printable(answer.asked.target.name()), served ? "served" : "missing",
                    printable(answer.text) + (served ? ", by " + answer.bundle : "")});
  }
  if (!rows.empty()) console.print(table_text(rows));
}

}  // namespace

int explain_profile_command(const Arguments& arguments, Console& console) {
  if (!arguments.files.empty() || !arguments.cccl.empty() || !arguments.manifest.empty()) {
    console.error({Code::InvalidArgument,
                   "--profile already lists the units; it cannot be combined with files, --cccl or "
                   "--manifest"});
    return kUsage;
  }
  Arguments given = arguments;
  if (given.bundles.empty()) given.bundles = Config::load({}, EventEmitter()).bundles;
  if (given.bundles.empty()) {
    console.error({Code::InvalidArgument,
                   "select a bundle to compare with: --bundle app.kiln, or the setting "
                   "'bundles' (KILN_BUNDLES)"});
    return kUsage;
  }
  const Result<Profile> profile = load_profile(arguments.profile, console);
  if (!profile) return report(profile.error(), console);
  const auto opened = open_bundle_arguments(given, console);
  if (!opened) return report(opened.error(), console);
  const ProfileChecker all(*opened, console);
  std::vector<ProfileResult> answers;
  for (const ProfileEntry& asked : profile->entries) answers.push_back(all.answer(asked));
  const auto missing =
      std::count_if(answers.begin(), answers.end(), [](const ProfileResult& answer) { return answer.bundle.empty(); });
  if (arguments.json) {
    console.print(explain_profile_json(*profile, answers));
  } else {
    print_answers(answers, console);
    console.print(std::to_string(missing) + " missing of " + std::to_string(answers.size()) + " requested");
  }
  return arguments.check && missing > 0 ? kFailed : kSuccess;
}

}  // namespace kiln::cli
