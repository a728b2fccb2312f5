// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "apps/bundle_program.hpp"

namespace kiln::test {

/// A fixture that runs kiln on several simulated hosts that share a directory. Each host has its own cache.
class FleetProgram : public BundleProgram {
 protected:
  void SetUp() override {
    BundleProgram::SetUp();
    std::filesystem::create_directories(path("shared"));
    ci_public_ = new_key("ci.key");
    policy_for(ci_public_, "acme/vision");
  }

  /// Returns the environment of a host: its cache, the shared store and the policy.
  Variables host(const std::string& name, Variables more = {}) const {
    Variables all = {{"KILN_CACHE_DIR", path(name)},
                     {"KILN_REMOTE", path("shared")},
                     {"KILN_LEASE", path("shared")},
                     {"KILN_TRUST", path("policy.toml")}};
    for (auto& [variable, value] : more) all[variable] = value;
    return all;
  }
  /// Returns the environment of a host that publishes.
  Variables ci(const std::string& name, const std::string& epoch = "3") const {
    return host(name, {{"KILN_REMOTE_SIGNING_KEY", path("ci.key")},
                       {"KILN_REMOTE_NAMESPACE", "acme/vision"},
                       {"KILN_REMOTE_EPOCH", epoch}});
  }
  /// Publishes the two units of the project to the shared store.
  void publish(const std::string& epoch = "3") {
    const Ran ran = run({"warm", "--from", "kiln.toml", "--json"}, ci("ci_cache" + epoch, epoch));
    ASSERT_EQ(ran.exit_code, 0) << ran.err << ran.out;
    ASSERT_EQ(ran.json()["summary"]["published"], 2) << ran.out << ran.err;
  }

  std::string ci_public_;
};

}  // namespace kiln::test
