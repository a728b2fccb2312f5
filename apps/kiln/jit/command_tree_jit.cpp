// SPDX-License-Identifier: Apache-2.0
// The commands for the caches of other systems: kiln jit, kiln run.
#include "apps/kiln/command_tree.hpp"
#include "apps/kiln/commands.hpp"

namespace kiln::cli {
namespace {

constexpr const char* kJitFooter =
    "Systems such as Triton and TileLang keep compiled kernels in directories of their own. Rules state what an entry\n"
    "is, for each system and range of versions; 'kiln jit list' shows the systems of the active Python environment.\n"
    "'publish' packs new entries into kiln's cache and remote store, 'fill' places them below the directory of the\n"
    "system before a program starts. Existing files are never replaced.\n"
    "\n"
    "Example:\n"
    "  kiln jit publish triton\n"
    "  kiln bundle create --external jit.triton -o triton.kiln --key kiln.key --namespace acme/vision --epoch 7\n"
    "  KILN_BUNDLES=triton.kiln kiln jit fill triton";

constexpr const char* kRunFooter =
    "Places the entries of all systems that are installed in the command's Python environment, sets the variables\n"
    "of their caches unless they are set, runs the command, and publishes new entries. The exit code is that of the\n"
    "command, 127 if it is not found, 126 if it cannot be started. SIGUSR1 publishes at once; SIGINT, SIGTERM,\n"
    "SIGHUP, SIGQUIT and SIGUSR2 are passed on. If nothing can be placed, the command runs anyway. --json prints a\n"
    "report after the output of the command. With KILN_TRACE=FILE the command writes FILE and kiln itself FILE.run;\n"
    "'kiln report' shows both.\n"
    "\n"
    "Example:\n"
    "  kiln run -- python serve.py\n"
    "  kiln run --publish 60 --host-code tilelang -- python train.py";

}  // namespace

void CommandTree::add_jit_options(CLI::App& command, bool places) {
  Arguments& to = parsed_.arguments;
  command.add_option("--profile", to.profile, "Name of the set of entries (default: default)")->type_name("NAME");
  add_list(command, "--host-code", to.host_code, "SYSTEM", "Use this system although its entries contain host code");
  add_list(command, "--root", to.roots, "SYSTEM=DIR", "Cache directory of a system (default: its variable, its rule)");
  command.add_option("--rules", to.rules, "Directory with additional rules, which come first")->type_name("DIR");
  if (!places) return;
  CLI::Validator seconds = CLI::Range(0, 86400);
  seconds.description("");
  command.add_option("--time", to.seconds, "Time limit in seconds (default: 10)")->type_name("N")->check(seconds);
  command.add_option("--max-entry", to.max_entry, "Size limit of one entry (default: 256M)")->type_name("SIZE");
  command.add_option("--max-system", to.max_system, "Size limit of one system (default: 4G)")->type_name("SIZE");
  command.add_option("--max-size", to.max_size, "Size limit of all systems (default: 8G)")->type_name("SIZE");
}

void CommandTree::add_jit() {
  Arguments& to = parsed_.arguments;
  CLI::App* jit = add(app_, "jit", "Share the caches of other systems that compile at run time", nullptr);
  jit->require_subcommand(1);
  CLI::App* fill = add(*jit, "fill", "Place entries in the cache directories of other systems", jit_fill_command);
  CLI::App* publish = add(*jit, "publish", "Pack new entries of other systems into kiln's cache", jit_publish_command);
  CLI::App* list = add(*jit, "list", "List the installed systems, their rules and entries", jit_list_command);
  CLI::App* explain = add(*jit, "explain", "Show which entries were missing and why", jit_explain_command);
  for (CLI::App* command : {fill, publish, list, explain}) {
    command
        ->add_option("SYSTEM", to.external,
                     command == explain ? "Systems, or entries as SYSTEM/PATH (default: all that are installed)"
                                        : "Systems (default: all that are installed)")
        ->type_name("");
    add_jit_options(*command, command == fill || command == publish);
  }
  explain->add_flag("--check", to.check, "Return 1 if a system is not installed or used, or its lists lack an entry");
  for (CLI::App* command : {jit, fill, publish, list, explain}) command->footer(kJitFooter);

  CLI::App* run = add(app_, "run", "Run a command with the caches of other systems filled", run_command);
  add_jit_options(*run, true);
  run->add_option("--publish", to.publish, "When to publish: exit, never, or every N seconds (default: exit)")
      ->type_name("WHEN");
  run->footer(kRunFooter);
}

}  // namespace kiln::cli
