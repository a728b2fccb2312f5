// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/compile/profile_match.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/recipe.hpp"
#include "session/config/source_unit.hpp"

namespace kiln::cli {
namespace {

class ProfileMatcher {
 public:
  ProfileMatcher(const std::vector<Target>& instead, Components& components)
      : instead_(instead), components_(components) {}

  Status add_units(const Manifest& manifest, const std::vector<Target>& targets);
  Status match(const ProfileEntry& asked);
  ProfileMatch take() { return std::move(match_); }

 private:
  struct Candidate {
    std::string file;
    Unit unit;
  };
  void add_unit(const std::string& file, const Unit& unit) { units_.try_emplace(unit.key(), Candidate{file, unit}); }
  void unmatched(const ProfileEntry& asked, std::string reason) {
    match_.unmatched.push_back({asked, std::move(reason)});
  }
  std::string unmatched_reason(const ProfileEntry& asked) const;
  Result<std::string> unsupported_reason(const Unit& unit, const Target& target);
  Status add_job(const ProfileEntry& asked, const Candidate& candidate, const Target& target);

  const std::vector<Target>& instead_;
  Components& components_;
  std::set<std::string> names_;
  std::unordered_map<UnitKey, Candidate> units_;
  std::set<std::pair<UnitKey, std::string>> jobs_;
  ProfileMatch match_;
};

Status ProfileMatcher::add_units(const Manifest& manifest, const std::vector<Target>& targets) {
  for (const Manifest::UnitEntry& member : manifest.members) {
    if (!member.spec) {
      const Result<std::vector<Unit>> units = read_units(member.source);
      if (!units) return units.error();
      for (const Unit& unit : *units) {
        names_.insert(unit.label());
        add_unit(job_file(member.source, unit), unit);
      }
      continue;
    }
    names_.insert(member.name);
    // Operators that targets share are built for the lowest target, which is part of the key. The program may have
    // requested the plain spec, or the spec for any list of targets that starts with one of these.
    add_unit(member.name, member.spec->unit());
    for (const Target& target : targets) add_unit(member.name, member.spec->for_targets({target}).unit());
  }
  return {};
}

std::string ProfileMatcher::unmatched_reason(const ProfileEntry& asked) const {
  if (names_.count(asked.unit) == 0) return "the manifest has no unit with this name";
  return std::string("the manifest's unit with this name ") + kDifferentUnit + " than the requested unit";
}

// Returns the reason why this machine cannot compile for the target; empty if it can. Returns an error if there is no
// compiler at all.
Result<std::string> ProfileMatcher::unsupported_reason(const Unit& unit, const Target& target) {
  const Result<Compiler*> compiler = components_.compiler(unit, target);
  if (!compiler) return compiler.error();
  const Result<CompilerIdentity> identity = (*compiler)->identity({});
  if (!identity) {
    // An OpenCL compiler belongs to its device, which this machine may not have.
    if (target.form == Form::OpenClBinary) return identity.error().message;
    return identity.error();
  }
  const Status supported = (*compiler)->supports(target);
  return supported ? std::string() : supported.error().message;
}

Status ProfileMatcher::add_job(const ProfileEntry& asked, const Candidate& candidate, const Target& target) {
  const Target made = effective_target(candidate.unit, target);
  if (!jobs_.emplace(candidate.unit.key(), made.name()).second) return {};
  const Result<std::string> objection = this->unsupported_reason(candidate.unit, made);
  if (!objection) return objection.error();
  if (objection->empty()) {
    match_.jobs.push_back({candidate.file, candidate.unit, made});
  } else {
    unmatched({asked.unit, asked.kind, asked.key, made}, *objection);
  }
  return {};
}

Status ProfileMatcher::match(const ProfileEntry& asked) {
  const auto found = units_.find(asked.key);
  if (found == units_.end()) {
    unmatched(asked, unmatched_reason(asked));
    return {};
  }
  // --arch applies to CUDA only. For OpenCL the device in the profile is used.
  if (instead_.empty() || asked.target.form == Form::OpenClBinary) return add_job(asked, found->second, asked.target);
  for (const Target& target : instead_) {
    if (Status added = add_job(asked, found->second, target); !added) return added;
  }
  return {};
}

}  // namespace

Result<Profile> load_profile(const std::string& path, Console& console) {
  Result<Profile> profile = read_profile(path);
  if (profile && profile->skipped_lines > 0) {
    console.warn(path + ": " + std::to_string(profile->skipped_lines) + " invalid lines are skipped");
  }
  return profile;
}

void print_unmatched(const std::vector<ProfileMatch::Unmatched>& unmatched, const char* what, Console& console) {
  for (const auto& [asked, reason] : unmatched) {
    console.warn(what + (": " + printable(asked.unit + " for " + asked.target.name())) + " (key " +
                 asked.key.hex().substr(0, 12) + "): " + reason);
  }
}

Result<ProfileMatch> match_profile(const Profile& profile, const Manifest& manifest, const std::vector<Target>& instead,
                                   Components& components) {
  std::vector<Target> targets = manifest.architectures;
  const auto add = [&](const Target& target) {
    if (std::find(targets.begin(), targets.end(), target) == targets.end()) targets.push_back(target);
  };
  for (const Target& target : instead) add(target);
  for (const ProfileEntry& asked : profile.entries) {
    if (asked.kind == "cccl") add(asked.target);
  }
  ProfileMatcher matcher(instead, components);
  if (Status added = matcher.add_units(manifest, targets); !added) return added.error();
  for (const ProfileEntry& asked : profile.entries) {
    if (Status matched = matcher.match(asked); !matched) return matched.error();
  }
  return matcher.take();
}

}  // namespace kiln::cli
