// kiln explain --profile: what was asked for that bundles lack.
#include <algorithm>

#include "apps/kiln/bundle_files.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/profile_match.hpp"
#include "apps/kiln/render_bundle_json.hpp"
#include "base/error.hpp"

namespace kiln::cli {
namespace {

std::string served_text(const Target& made, const Target& wanted) {
  if (made == wanted) return "exact";
  const char* what = made.form == Form::Ptx ? " (PTX) for " : " for ";
  return made.name() + what + wanted.name();
}

class Answers {
 public:
  Answers(const std::vector<OpenBundle>& bundles, Console& console) : bundles_(bundles), console_(console) {}

  ProfileAnswer answer(const Asked& asked) const;

 private:
  std::string lacking(const Asked& asked) const;

  const std::vector<OpenBundle>& bundles_;
  Console& console_;
};

// Which architectures there are instead, or that nobody knows the unit.
std::string Answers::lacking(const Asked& asked) const {
  bool named = false;
  for (const OpenBundle& open : bundles_) {
    const Result<std::vector<Target>> targets = open.bundle->targets(asked.key);
    if (targets && !targets->empty()) {
      return open.path + " has it for " + joined(*targets, &Target::name);
    }
    const Result<BundleDescription> description = open.bundle->description();
    if (!description) continue;
    named = named || std::any_of(description->artifacts.begin(), description->artifacts.end(),
                                 [&](const auto& artifact) { return artifact.unit == asked.unit; });
  }
  return named ? "the unit of that name has another source, other options or other entries" : "the unit is unknown";
}

ProfileAnswer Answers::answer(const Asked& asked) const {
  for (const OpenBundle& open : bundles_) {
    const Result<std::optional<Bundle::Pinned>> found = open.bundle->find(asked.key, asked.target);
    if (!found) console_.warn(open.path + ": " + found.error().message);
    if (!found || !*found) continue;
    const Target& made = (*found)->artifact.target;
    return {asked, open.path, made, served_text(made, asked.target)};
  }
  return {asked, {}, std::nullopt, lacking(asked)};
}

void print_answers(const std::vector<ProfileAnswer>& answers, Console& console) {
  std::vector<std::vector<std::string>> rows;
  for (const ProfileAnswer& answer : answers) {
    const bool served = !answer.bundle.empty();
    rows.push_back({printable(answer.asked.unit), printable(answer.asked.target.name()), served ? "served" : "lacking",
                    printable(answer.text) + (served ? ", by " + answer.bundle : "")});
  }
  if (!rows.empty()) console.print(table_text(rows));
}

}  // namespace

int explain_profile_command(const Arguments& arguments, Console& console) {
  if (!arguments.files.empty() || !arguments.cccl.empty() || !arguments.manifest.empty()) {
    console.error({Code::InvalidArgument,
                   "--profile says what was asked for; files, --cccl and --manifest do not go "
                   "with it"});
    return kUsage;
  }
  Arguments given = arguments;
  if (given.bundles.empty()) given.bundles = Config::load({}, Observer()).bundles;
  if (given.bundles.empty()) {
    console.error({Code::InvalidArgument,
                   "say which bundle to compare with: --bundle app.kiln, or the setting "
                   "'bundles' (KILN_BUNDLES)"});
    return kUsage;
  }
  const Result<Profile> profile = load_profile(arguments.profile, console);
  if (!profile) return report(profile.error(), console);
  const auto opened = open_given(given, console);
  if (!opened) return report(opened.error(), console);
  const Answers all(*opened, console);
  std::vector<ProfileAnswer> answers;
  for (const Asked& asked : profile->asked) answers.push_back(all.answer(asked));
  const auto lacking =
      std::count_if(answers.begin(), answers.end(), [](const ProfileAnswer& answer) { return answer.bundle.empty(); });
  if (arguments.json) {
    console.print(explain_profile_json(*profile, answers));
  } else {
    print_answers(answers, console);
    console.print(std::to_string(lacking) + " lacking of " + std::to_string(answers.size()) + " asked");
  }
  return arguments.check && lacking > 0 ? kFailed : kDone;
}

}  // namespace kiln::cli
