#include <utility>

#include "apps/kiln/examine.hpp"
#include "bundle/bundle.hpp"
#include "session/trust_file.hpp"

namespace kiln::cli {
namespace {

using State = Finding::State;

Result<std::string> look_into(const std::string& path, const TrustPolicy& policy) {
  auto source = open_bundle_source(path);
  if (!source) return source.error();
  const auto bundle = Bundle::open(std::move(*source), &policy);
  if (!bundle) return bundle.error();
  const BundleHeader& header = (*bundle)->header();
  const std::string signer =
      header.signature ? "signed by " + header.signature->key.hex().substr(0, 16) : std::string("signed by nobody");
  return header.name_space + ", epoch " + std::to_string(header.epoch) + ", " + signer;
}

}  // namespace

Finding examine_bundles(const Config& config) {
  Finding finding{State::Good, "bundles", {}, {}, {}};
  if (config.bundles.empty()) {
    finding.text = "none is configured; programs may have their own linked in";
    finding.advice = "nothing to do; docs/bundles.md says what they are for";
    return finding;
  }
  std::string broken;
  const Observer observer([&](const Event& event) { broken = event.message; });
  const TrustPolicy policy = trust_policy_of({}, config, observer);
  std::size_t refused = 0;
  finding.details.push_back({"bundle", "state"});
  for (const std::string& path : config.bundles) {
    const Result<std::string> found = look_into(path, policy);
    if (!found) ++refused;
    finding.details.push_back({path, found ? *found : found.error().message});
  }
  const std::string asked =
      config.bundles_exact ? "for exactly what would be compiled here" : "for what fits the device";
  finding.text = std::to_string(config.bundles.size() - refused) + " of " + std::to_string(config.bundles.size()) +
                 " are asked " + asked + ", before any cache";
  finding.advice = "nothing to do";
  if (refused == 0 && broken.empty()) return finding;
  finding.state = State::Problem;
  finding.advice = broken.empty() ? "see to what the table says; docs/trust.md" : broken;
  return finding;
}

}  // namespace kiln::cli
