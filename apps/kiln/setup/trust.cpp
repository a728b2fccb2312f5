// SPDX-License-Identifier: Apache-2.0
// kiln trust add: adds a key to the policy file of this machine.
#include <filesystem>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/key.hpp"
#include "apps/kiln/output/json_common.hpp"
#include "base/error.hpp"
#include "base/format.hpp"
#include "base/process/environment.hpp"
#include "base/text.hpp"
#include "session/config/trust_policy_edit.hpp"
#include "trust/statement.hpp"

namespace kiln::cli {
namespace {

// Returns the policy file: the given one, the configured one, or the default one in the user's configuration directory.
Result<std::string> policy_path(const Arguments& arguments, const Config& config) {
  if (!arguments.policy.empty()) return std::filesystem::absolute(arguments.policy).lexically_normal().string();
  if (!config.trust_policy.empty()) return config.trust_policy;
  std::string own = user_path("XDG_CONFIG_HOME", ".config", "kiln/trust.toml");
  if (own.empty()) {
    return make_error(Code::InvalidArgument,
                      "no policy file is configured and HOME is not set; give one with --policy");
  }
  return own;
}

}  // namespace

int trust_add_command(const Arguments& arguments, Console& console) {
  const Result<PublicKey> key = public_key_of(arguments.key);
  if (!key) return report(key.error(), console);
  const Config config = Config::load({}, EventEmitter(console.listener()));
  const Result<std::string> path = policy_path(arguments, config);
  if (!path) return report(path.error(), console);
  std::vector<std::string> namespaces;
  const std::string names = arguments.name_space.value_or("");
  for (const std::string_view each : split(names, ',')) namespaces.emplace_back(each);
  const Result<bool> added = add_trusted_key(*path, *key, namespaces);
  if (!added) return report(added.error(), console);
  const bool used = config.trust_policy == *path;
  if (arguments.json) {
    console.print(text_of({{"policy", *path},
                           {"public", key->text()},
                           {"id", key->id().hex()},
                           {"namespaces", namespaces},
                           {"added", *added},
                           {"used", used}}));
    return kSuccess;
  }
  console.print("key " + short_id(key->id()) + (*added ? " is now trusted for " : " was already trusted for ") +
                printable(join_strings(namespaces)) + " in " + printable(*path));
  if (!used) {
    console.print("Programs do not read this file yet: set KILN_TRUST=" + printable(*path) +
                  ", or trust.policy in the configuration ('kiln init' writes one).");
  }
  return kSuccess;
}

}  // namespace kiln::cli
