#include "apps/kiln/profile_match.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/recipe.hpp"
#include "session/source_unit.hpp"

namespace kiln::cli {
namespace {

class Matcher {
 public:
  Matcher(const std::vector<Target>& instead, Toolbox& toolbox) : instead_(instead), toolbox_(toolbox) {}

  Status add_units(const Manifest& manifest, const std::vector<Target>& targets);
  Status match(const Asked& asked);
  ProfileMatch take() { return std::move(match_); }

 private:
  struct Candidate {
    std::string file;
    Unit unit;
  };
  void add_unit(const std::string& file, const Unit& unit) { units_.try_emplace(unit.key(), Candidate{file, unit}); }
  void unmatched(const Asked& asked, std::string why) { match_.unmatched.push_back({asked, std::move(why)}); }
  std::string stranger(const Asked& asked) const;
  Result<std::string> objection(const Unit& unit, const Target& target);
  Status add_job(const Asked& asked, const Candidate& candidate, const Target& target);

  const std::vector<Target>& instead_;
  Toolbox& toolbox_;
  std::set<std::string> names_;
  std::unordered_map<UnitKey, Candidate> units_;
  std::set<std::pair<UnitKey, std::string>> jobs_;
  ProfileMatch match_;
};

Status Matcher::add_units(const Manifest& manifest, const std::vector<Target>& targets) {
  for (const Manifest::Member& member : manifest.members) {
    names_.insert(member.name);
    if (!member.spec) {
      const Result<Unit> unit = read_unit(member.source);
      if (!unit) return unit.error();
      add_unit(member.source.file, *unit);
      continue;
    }
    // Operators that targets share are built for the lowest of them, which is a part of the key: the program may have
    // asked for the spec as it is, or as it is for any list of targets that begins with one of these.
    add_unit(member.name, member.spec->unit());
    for (const Target& target : targets) add_unit(member.name, member.spec->for_targets({target}).unit());
  }
  return {};
}

std::string Matcher::stranger(const Asked& asked) const {
  if (names_.count(asked.unit) == 0) return "the manifest has no unit of that name";
  return "the manifest's unit of that name has another source, other options or other entries than the one that was "
         "asked for";
}

// Why this machine does not compile for the target; empty where it does. An error is a compiler that is not there at
// all.
Result<std::string> Matcher::objection(const Unit& unit, const Target& target) {
  const Result<Compiler*> compiler = toolbox_.compiler(unit, target);
  if (!compiler) return compiler.error();
  const Result<CompilerIdentity> identity = (*compiler)->identity();
  if (!identity) {
    // An OpenCL compiler belongs to its device, which another machine need not have.
    if (target.form == Form::OpenClBinary) return identity.error().message;
    return identity.error();
  }
  const Status supported = (*compiler)->supports(target);
  return supported ? std::string() : supported.error().message;
}

Status Matcher::add_job(const Asked& asked, const Candidate& candidate, const Target& target) {
  const Target made = fitted(candidate.unit, target);
  if (!jobs_.emplace(candidate.unit.key(), made.name()).second) return {};
  const Result<std::string> objection = this->objection(candidate.unit, made);
  if (!objection) return objection.error();
  if (objection->empty()) {
    match_.jobs.push_back({candidate.file, candidate.unit, made});
  } else {
    unmatched({asked.unit, asked.kind, asked.key, made}, *objection);
  }
  return {};
}

Status Matcher::match(const Asked& asked) {
  const auto found = units_.find(asked.key);
  if (found == units_.end()) {
    unmatched(asked, stranger(asked));
    return {};
  }
  // Architectures are CUDA's; an OpenCL device is the one that was seen.
  if (instead_.empty() || asked.target.form == Form::OpenClBinary) return add_job(asked, found->second, asked.target);
  for (const Target& target : instead_) {
    if (Status added = add_job(asked, found->second, target); !added) return added;
  }
  return {};
}

}  // namespace

Result<Profile> load_profile(const std::string& path, Console& console) {
  Result<Profile> profile = read_profile(path);
  if (profile && profile->not_understood > 0) {
    console.warn(path + ": " + std::to_string(profile->not_understood) +
                 " lines were not understood and are passed over");
  }
  return profile;
}

void print_unmatched(const std::vector<ProfileMatch::Unmatched>& unmatched, const char* what, Console& console) {
  for (const auto& [asked, why] : unmatched) {
    console.warn(what + (": " + printable(asked.unit + " for " + asked.target.name())) + " (key " +
                 asked.key.hex().substr(0, 12) + "): " + why);
  }
}

Result<ProfileMatch> match_profile(const Profile& profile, const Manifest& manifest, const std::vector<Target>& instead,
                                   Toolbox& toolbox) {
  std::vector<Target> targets = manifest.architectures;
  const auto add = [&](const Target& target) {
    if (std::find(targets.begin(), targets.end(), target) == targets.end()) targets.push_back(target);
  };
  for (const Target& target : instead) add(target);
  for (const Asked& asked : profile.asked) {
    if (asked.kind == "cccl") add(asked.target);
  }
  Matcher matcher(instead, toolbox);
  if (Status added = matcher.add_units(manifest, targets); !added) return added.error();
  for (const Asked& asked : profile.asked) {
    if (Status matched = matcher.match(asked); !matched) return matched.error();
  }
  return matcher.take();
}

}  // namespace kiln::cli
