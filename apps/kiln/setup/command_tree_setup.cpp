// SPDX-License-Identifier: Apache-2.0
// The commands that prepare a machine or a project: kiln init, kiln trust.
#include "apps/kiln/command_tree.hpp"
#include "apps/kiln/commands.hpp"

namespace kiln::cli {

void CommandTree::add_setup() {
  Arguments& to = parsed_.arguments;
  add(app_, "init", "Write a kiln.toml for this directory and a configuration file", init_command)
      ->footer(
          "Lists the sources with kernels in this directory and in kernels/. The configuration file has every setting "
          "as\n"
          "a comment (~/.config/kiln/config.toml). Existing files are not changed.\n"
          "\n"
          "Example:\n"
          "  kiln init && kiln compile --manifest kiln.toml");
  CLI::App* trust = add(app_, "trust", "Change the keys that this machine trusts", nullptr);
  trust->require_subcommand(1);
  CLI::App* key = add(*trust, "add", "Trust a key for namespaces", trust_add_command);
  key->add_option("KEY", to.key, "Public key, or a file that contains it")->required()->type_name("");
  key->add_option("--namespace", to.name_space, "Namespaces: acme/vision, acme/* for all below acme, * for all")
      ->required()
      ->type_name("LIST");
  key->add_option("--policy", to.policy, "Policy file (default: trust.policy, ~/.config/kiln/trust.toml)")
      ->type_name("FILE");
  for (CLI::App* command : {trust, key}) {
    command->footer(
        "Bundles and remote entries are used if a trusted key signed them for their namespace. The policy file keeps "
        "its\n"
        "other contents and is replaced atomically; a link or a file that other users can write to is rejected.\n"
        "\n"
        "Example:\n"
        "  kiln trust add kiln-public-1:3fa9… --namespace acme/vision\n"
        "  kiln trust add kiln.key --namespace 'acme/*' --policy trust.toml    the public half of an own key");
  }
}

}  // namespace kiln::cli
