// SPDX-License-Identifier: Apache-2.0
// The commands and options of `kiln bundle`.
#include <utility>

#include "apps/kiln/command_tree.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/help_texts.hpp"

namespace kiln::cli {

// Adds the options for the namespace, the epoch and the signing key of a bundle that the command writes.
void CommandTree::add_identity_options(CLI::App& command) {
  Arguments& to = parsed_.arguments;
  command.add_option("--key", to.signing_key, "Secret key that signs the bundle ('kiln key generate' creates one)")
      ->type_name("FILE");
  command.add_option("--namespace", to.name_space, "Namespace to sign for, for example acme/vision")->type_name("NAME");
  command.add_option("--epoch", to.epoch, "Release number; policies can reject lower numbers")->type_name("N");
}

// Adds the options that state who built a bundle and from which source.
void CommandTree::add_provenance(CLI::App& command) {
  Arguments& to = parsed_.arguments;
  command
      .add_option("--provenance", to.provenance, "in-toto statement with SLSA provenance, or ci for the CI variables")
      ->type_name("FILE");
  command.add_option("--builder-id", to.builder_id, "URI of the builder for the provenance statement")
      ->type_name("URI");
  command.add_option("--source-uri", to.source_uri, "URI of the source repository, for example git+https://…")
      ->type_name("URI");
  command.add_option("--source-commit", to.source_commit, "Commit of the source repository")->type_name("COMMIT");
}

void CommandTree::add_bundle() {
  Arguments& to = parsed_.arguments;
  CLI::App* bundle = add(app_, "bundle", "Build bundles of compiled units for machines without a compiler", nullptr);
  bundle->require_subcommand(1);
  CLI::App* create = add(*bundle, "create", "Compile the units of a kiln.toml into one bundle", bundle_create_command);
  create->add_option("MANIFEST", to.manifest, "kiln.toml that lists units and architectures")->type_name("");
  add_list(*create, "--external", to.external, "SYSTEM",
           "Pack the cache entries of this system (triton) instead of a MANIFEST");
  add_architectures(*create);
  create->add_option("--from", to.profile, "Build only the units that this profile lists")->type_name("FILE");
  create->add_option("-j,--jobs", to.jobs, "Number of parallel compiles (default: one per core)")->type_name("N");
  create->add_option("--depfile", to.depfile, "Write the list of input files here, for Make and Ninja")
      ->type_name("FILE");
  add_provenance(*create);
  CLI::App* ls = add(*bundle, "ls", "List namespace, epoch, signer and artifacts", bundle_ls_command);
  CLI::App* verify = add(*bundle, "verify", "Verify trust and contents of bundles", bundle_verify_command);
  CLI::App* extract = add(*bundle, "extract", "Write the code of one artifact to a file", bundle_extract_command);
  CLI::App* diff =
      add(*bundle, "diff", "List the differences between two bundles and their causes", bundle_diff_command);
  CLI::App* merge = add(*bundle, "merge", "Merge several bundles into one", bundle_merge_command);
  CLI::App* split = add(*bundle, "split", "Write one bundle for each architecture of a bundle", bundle_split_command);
  CLI::App* oci = add(*bundle, "oci", "Write an OCI image layout for registries", bundle_oci_command);
  for (CLI::App* command : {ls, verify, extract, diff, merge, split, oci}) {
    const bool several = command == verify || command == merge;
    command->add_option("BUNDLE", to.bundles,
                        several           ? "Bundles"
                        : command == diff ? "Two bundles"
                                          : "Bundle")
        ->required()
        ->expected(command == diff ? 2 : 1, several           ? 1 << 20
                                            : command == diff ? 2
                                                              : 1)
        ->allow_extra_args(several)  // otherwise it would also take the arguments after it
        ->type_name("");
  }
  verify->add_option("--public-key", to.public_key, "Trust this key instead of the configured policy")
      ->type_name("KEY");
  verify->add_flag("--untrusted", to.untrusted, "Also check the contents of an untrusted bundle, within limits");
  extract->add_option("WHAT", to.key, "Unit name or key prefix")->required()->type_name("");
  add_architectures(*extract);
  oci->add_option("--reference", to.reference, "Name of the image in the layout (default: latest)")->type_name("NAME");
  oci->add_flag("--by-arch", to.by_architecture, "Write one image for each architecture: NAME-sm_90");
  add_part_key(*split);
  add_part_key(*oci);
  const std::pair<CLI::App*, const char*> outputs[] = {
      {create, "Output file; an existing file is replaced atomically"},
      {extract, "Output file; - is standard output"},
      {merge, "Output file; an existing file is replaced atomically"},
      {split, "Output directory; created if it does not exist"},
      {oci, "Output directory; must be new or empty"},
  };
  for (const auto& [command, about] : outputs) {
    command->add_option("-o,--output", to.output, about)->required()->type_name("PATH");
  }
  add_bundle_header(*bundle);
  add_bundle_pull(*bundle);
  add_identity_options(*create);
  add_identity_options(*merge);
  create->footer(kBundleCreateFooter);
  ls->footer("Example:\n  kiln bundle ls app.kiln --json | jq '.artifacts[].target'");
  verify->footer(kBundleVerifyFooter);
  extract->footer(kBundleExtractFooter);
  diff->footer(kBundleDiffFooter);
  merge->footer(kBundleMergeFooter);
  split->footer(kBundleSplitFooter);
  oci->footer(kBundleOciFooter);
  bundle->footer(kBundleFooter);
}

// Adds the key of a command that writes parts of a bundle. The parts have the namespace and the epoch of the bundle.
void CommandTree::add_part_key(CLI::App& command) {
  command.add_option("--key", parsed_.arguments.signing_key, "Secret key that signs the bundle of each architecture")
      ->type_name("FILE");
}

void CommandTree::add_bundle_pull(CLI::App& bundle) {
  Arguments& to = parsed_.arguments;
  CLI::App* pull = add(bundle, "pull", "Copy the image that the devices of this machine use", bundle_pull_command);
  pull->add_option("IMAGE", to.reference, "docker://REGISTRY/NAME:TAG, or oci:DIR:NAME for a layout")
      ->required()
      ->type_name("");
  add_architectures(*pull);
  pull->add_option("-o,--output", to.output, "Output directory; must be new or empty")->required()->type_name("DIR");
  pull->footer(kBundlePullFooter);
}

void CommandTree::add_bundle_header(CLI::App& bundle) {
  Arguments& to = parsed_.arguments;
  CLI::App* header = add(bundle, "header", "Write a C++ header with the units of a kiln.toml", bundle_header_command);
  header->add_option("MANIFEST", to.manifest, "kiln.toml")->required()->type_name("");
  header->add_option("-o,--output", to.output, "Output header, whose name is its namespace; - is standard output")
      ->required()
      ->type_name("PATH");
  header->footer(
      "A program that includes the header requests exactly the units in the bundle of the same kiln.toml.\n"
      "\n"
      "Example:\n"
      "  kiln bundle header kiln.toml -o app_units.hpp");
}

}  // namespace kiln::cli
