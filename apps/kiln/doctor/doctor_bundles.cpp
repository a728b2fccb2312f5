// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <utility>

#include "apps/kiln/doctor/doctor_checks.hpp"
#include "base/format.hpp"
#include "bundle/bundle.hpp"
#include "session/config/trust_policy_file.hpp"

namespace kiln::cli {
namespace {

using State = DoctorCheck::State;

Result<std::string> look_into(const std::string& path, const TrustPolicy& policy) {
  auto source = open_bundle_source(path);
  if (!source) return source.error();
  const auto bundle = Bundle::open(std::move(*source), &policy);
  if (!bundle) return bundle.error();
  const BundleHeader& header = (*bundle)->header();
  const std::string signer =
      header.signature ? "signed by " + header.signature->key.hex().substr(0, 16) : std::string("unsigned");
  std::string text = header.name_space + ", epoch " + std::to_string(header.epoch) + ", " + signer;
  const Result<BundleDescription> about = (*bundle)->description();
  if (!about) return about.error();
  std::set<std::string> targets;
  for (const BundleDescription::Artifact& artifact : about->artifacts) targets.insert(artifact.target.name());
  return text + ", for " + join_strings(targets);
}

}  // namespace

DoctorCheck check_bundles(const Config& config) {
  DoctorCheck finding{State::Ok, "bundles", {}, {}, {}};
  if (config.bundles.empty()) {
    finding.text = "none configured; programs can have linked bundles";
    finding.advice = "nothing to do; docs/how-to/ship-bundles.md describes bundles";
    return finding;
  }
  std::string broken;
  const EventEmitter emitter([&](const Event& event) { broken = event.message; });
  const TrustPolicy policy = make_trust_policy({}, config, emitter);
  std::size_t rejected = 0;
  std::string first_rejected;
  finding.details.push_back({"bundle", "state"});
  for (const std::string& path : config.bundles) {
    const Result<std::string> found = look_into(path, policy);
    if (!found && rejected++ == 0) first_rejected = found.error().message;
    finding.details.push_back({path, found ? *found : found.error().message});
  }
  const std::string asked = config.bundles_exact ? "for exact matches" : "for compatible artifacts";
  finding.text = std::to_string(config.bundles.size() - rejected) + " of " + std::to_string(config.bundles.size()) +
                 " are searched " + asked + " before any cache";
  finding.advice = "nothing to do";
  if (rejected == 0 && broken.empty()) return finding;
  finding.state = State::Problem;
  finding.advice = !broken.empty() ? broken : "programs do not use " + first_rejected;
  return finding;
}

}  // namespace kiln::cli
