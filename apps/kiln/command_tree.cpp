#include "apps/kiln/command_tree.hpp"

#include <utility>

#include <kiln/cccl.hpp>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/help_texts.hpp"

namespace kiln::cli {

// CLI11's own validators cannot be asked.
std::vector<std::string> choices_of(const std::string& name) {
  if (name == "--backend") return {"cuda", "opencl"};
  if (name == "--cccl") {
    std::vector<std::string> names = {"founding"};
    for (const cccl::Spec& spec : cccl::founding()) names.push_back(spec.name);
    return names;
  }
  if (name == "SHELL") return {"bash", "zsh", "fish"};
  if (name == "--fail-on") return {"low", "medium", "high", "blocking"};
  return {};
}

namespace {

// Without CLI11's own words for it in the help, which says it already.
CLI::Validator one_of(const std::string& name) {
  CLI::Validator validator = CLI::IsMember(choices_of(name));
  validator.description("");
  return validator;
}

}  // namespace

CommandTree::CommandTree() : app_(kAbout, "kiln") {
  app_.require_subcommand(0, 1);
  app_.set_help_flag("-h,--help", "Explain this and exit");
  const auto format = app_.get_formatter();
  format->column_width(30);
  format->label("SUBCOMMAND", "COMMAND");
  format->label("SUBCOMMANDS", "COMMANDS");
  format->label("Positionals", "Arguments");
  format->label("REQUIRED", "");
  app_.add_flag("--version", wants_version_, "Print the version and exit");
  add_compile_and_explain();
  add_warm();
  add_bundle();
  add_cache();
  add_remote();
  add_key();
  add_audit();
  add_others();
  app_.footer(kMainFooter);  // last: a command takes over the footer that its parent has when it is added
}

CLI::App* CommandTree::add(CLI::App& parent, const char* name, const char* about, Run run) {
  CLI::App* command = parent.add_subcommand(name, about);
  command->group("Commands");
  Arguments& to = parsed_.arguments;
  if (run != nullptr) {
    command->final_callback([this, run] { parsed_.command = run; });
    command->add_flag("--json", to.json, "Print JSON");
    command->add_flag("-v,--verbose", to.verbose, "Tell each event on standard error");
    command->add_flag("-q,--quiet", to.quiet, "No warnings and no progress, errors only");
  }
  return command;
}

void CommandTree::add_architectures(CLI::App& command) {
  command
      .add_option("--arch", parsed_.arguments.architectures,
                  "Targets: sm_90 (machine code), compute_90 (PTX), lto_90 (LTO-IR)")
      ->delimiter(',')
      ->expected(1)
      ->type_name("LIST")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void CommandTree::add_unit_options(CLI::App& command) {
  Arguments& to = parsed_.arguments;
  command.add_option("FILE", to.files, "Sources: .cu (CUDA C++) or .cl (OpenCL C); - is standard input")->type_name("");
  command.add_option("--backend", to.backend, "cuda or opencl, where the file's name does not say")
      ->type_name("NAME")
      ->check(one_of("--backend"));
  add_architectures(command);
  // Each takes one value each time, so that a file name after it is a file name.
  const auto list = [&](const char* name, std::vector<std::string>& values, const char* type, const char* about) {
    command.add_option(name, values, about)
        ->expected(1)
        ->type_name(type)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  list("--cccl", to.cccl, "SPEC", "An algorithm of CCCL's: a founding spec's name, 'founding' for all 18, or JSON");
  command.add_option("--manifest", to.manifest, "A kiln.toml, which lists units and architectures")->type_name("FILE");
  list("-e,--entry", to.entries, "NAME", "A kernel to find in the result; for CUDA any name expression");
  list("-I,--include", to.include_folders, "DIR", "A folder to search for headers");
  list("-D,--define", to.definitions, "X[=Y]", "A macro");
  list("--option", to.options, "TEXT", "One option for the compiler, as it is");
  list("--seal", to.seals, "DIR=FILE", "FILE stands for all headers of -I DIR, which never change without it");
  command.add_option("--name", to.name, "What the compiler calls the program, instead of the file's name")
      ->type_name("NAME");
}

void CommandTree::add_compile_and_explain() {
  Arguments& to = parsed_.arguments;
  CLI::App* compile = add(app_, "compile", "Compile, or take from a cache what was compiled before", compile_command);
  add_unit_options(*compile);
  compile->add_option("-o,--output", to.output, "Write the result here: a file, - or a folder (made if it ends in /)")
      ->type_name("PATH");
  compile->add_option("-j,--jobs", to.jobs, "How many compiles at a time (default: one per core)")->type_name("N");
  compile->footer(kCompileFooter);

  CLI::App* explain =
      add(app_, "explain", "Say whether a compile would hit, and if not which input changed", explain_command);
  add_unit_options(*explain);
  explain->add_flag("--check", to.check, "Return 1 where anything would have to be compiled, or is lacking");
  explain->add_option("--profile", to.profile, "What programs asked for: say what of it bundles lack")
      ->type_name("FILE");
  explain->add_option("--bundle", to.bundles, "The bundles to compare it with (default: those of the settings)")
      ->expected(1)
      ->type_name("BUNDLE")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  explain->footer(kExplainFooter);
}

void CommandTree::add_warm() {
  Arguments& to = parsed_.arguments;
  CLI::App* warm = add(app_, "warm", "Fill this node: fetch what others compiled, compile the rest", warm_command);
  warm->add_option("--from", to.from, "What to have: a kiln.toml, a profile (.jsonl) or a bundle")
      ->required()
      ->type_name("FILE");
  warm->add_option("--manifest", to.manifest, "Of a profile: the kiln.toml that has its sources (default: kiln.toml)")
      ->type_name("FILE");
  add_architectures(*warm);
  warm->add_option("-j,--jobs", to.jobs, "How many at a time (default: one per core)")->type_name("N");
  warm->footer(kWarmFooter);
}

// Who a bundle that is written speaks for, and who vouches for it.
void CommandTree::add_speaker(CLI::App& command) {
  Arguments& to = parsed_.arguments;
  command.add_option("--key", to.signing_key, "Sign it with this secret key ('kiln key generate' makes one)")
      ->type_name("FILE");
  command.add_option("--namespace", to.name_space, "Whom it speaks for: acme/vision")->type_name("NAME");
  command.add_option("--epoch", to.epoch, "As of when: a number that grows, so that older ones can be refused")
      ->type_name("N");
}

void CommandTree::add_bundle() {
  Arguments& to = parsed_.arguments;
  CLI::App* bundle = add(app_, "bundle", "Build ahead of time what machines without a compiler load", nullptr);
  bundle->require_subcommand(1);
  CLI::App* create = add(*bundle, "create", "Compile what a kiln.toml lists into one file", bundle_create_command);
  create->add_option("MANIFEST", to.manifest, "A kiln.toml, which lists units and architectures")->type_name("");
  create
      ->add_option("--foreign", to.foreign,
                   "Instead of a MANIFEST: what this system compiled and the cache has (triton)")
      ->expected(1)
      ->type_name("SYSTEM")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_architectures(*create);
  create->add_option("--from", to.profile, "Build only what this profile says was asked for")->type_name("FILE");
  create->add_option("-j,--jobs", to.jobs, "How many compiles at a time (default: one per core)")->type_name("N");
  create->add_option("--depfile", to.depfile, "Write to it, as Make and Ninja read it, which files were read")
      ->type_name("FILE");
  CLI::App* ls = add(*bundle, "ls", "Who speaks, and one line per artifact", bundle_ls_command);
  CLI::App* verify =
      add(*bundle, "verify", "Read and check all of it, and whether it is believed here", bundle_verify_command);
  CLI::App* extract = add(*bundle, "extract", "Write the code of one artifact to a file", bundle_extract_command);
  CLI::App* diff = add(*bundle, "diff", "What another bundle has that one does not, and why", bundle_diff_command);
  CLI::App* merge = add(*bundle, "merge", "Put several bundles into one", bundle_merge_command);
  CLI::App* layout = add(*bundle, "layout", "Write an OCI image layout, for registries", bundle_layout_command);
  for (CLI::App* command : {ls, verify, extract, diff, merge, layout}) {
    const bool several = command == verify || command == merge;
    command->add_option("BUNDLE", to.bundles,
                        several           ? "The bundles"
                        : command == diff ? "The two"
                                          : "The bundle")
        ->required()
        ->expected(command == diff ? 2 : 1, several           ? 1 << 20
                                            : command == diff ? 2
                                                              : 1)
        ->allow_extra_args(several)  // else it would take what stands behind it, too
        ->type_name("");
  }
  verify->add_option("--public", to.public_key, "Believe this key, instead of those of the settings")->type_name("KEY");
  extract->add_option("WHAT", to.key, "A unit's name, or the beginning of a key")->required()->type_name("");
  add_architectures(*extract);
  layout->add_option("--reference", to.reference, "What the image is called in the layout (default: latest)")
      ->type_name("NAME");
  const std::pair<CLI::App*, const char*> outputs[] = {
      {create, "The file; an older one is replaced in one step"},
      {extract, "The file; - is standard output"},
      {merge, "The file; an older one is replaced in one step"},
      {layout, "The folder; it must be new or empty"},
  };
  for (const auto& [command, about] : outputs) {
    command->add_option("-o,--output", to.output, about)->required()->type_name("PATH");
  }
  add_bundle_units(*bundle);
  add_speaker(*create);
  add_speaker(*merge);
  create->footer(kBundleCreateFooter);
  ls->footer("Example:\n  kiln bundle ls app.kiln --json | jq '.artifacts[].target'");
  verify->footer(kBundleVerifyFooter);
  extract->footer(kBundleExtractFooter);
  diff->footer(kBundleDiffFooter);
  merge->footer(kBundleMergeFooter);
  layout->footer(kBundleLayoutFooter);
  bundle->footer(kBundleFooter);
}

void CommandTree::add_bundle_units(CLI::App& bundle) {
  Arguments& to = parsed_.arguments;
  CLI::App* units = add(bundle, "units", "Write a C++ header with the units of a kiln.toml", bundle_units_command);
  units->add_option("MANIFEST", to.manifest, "A kiln.toml")->required()->type_name("");
  units->add_option("-o,--output", to.output, "The header, whose name is its namespace; - is standard output")
      ->required()
      ->type_name("PATH");
  units->footer(
      "A program that includes it asks for exactly what the bundle of the same kiln.toml has.\n"
      "\n"
      "Example:\n"
      "  kiln bundle units kiln.toml -o app_units.hpp");
}

void CommandTree::add_cache() {
  Arguments& to = parsed_.arguments;
  CLI::App* cache = add(app_, "cache", "Look into the cache and keep it in order", nullptr);
  cache->require_subcommand(1);
  add(*cache, "stats", "How much there is, and of what", cache_stats_command);
  add(*cache, "ls", "One line per entry, the latest used first", cache_ls_command);
  CLI::App* show = add(*cache, "show", "All that is known of one entry", cache_show_command);
  CLI::App* extract = add(*cache, "extract", "Write the compiled code of one entry to a file", cache_extract_command);
  for (CLI::App* command : {show, extract}) {
    command->add_option("KEY", to.key, "The entry's key, or enough of its beginning")->required()->type_name("");
  }
  extract->add_option("-o,--output", to.output, "The file; - is standard output")->required()->type_name("FILE");
  CLI::App* gc = add(*cache, "gc", "Evict what is over the size bound, and what was left behind", cache_gc_command);
  gc->add_option("--max-size", to.max_size, "Another bound than cache.max_size, for this time: 5G, 512M")
      ->type_name("SIZE");
  add(*cache, "verify", "Read every entry, check it, and remove what is damaged", cache_verify_command);
  CLI::App* clear = add(*cache, "clear", "Remove every entry", cache_clear_command);
  clear->add_flag("-y,--yes", to.yes, "Do not ask");
  cache->footer(kCacheFooter);
}

void CommandTree::add_remote() {
  Arguments& to = parsed_.arguments;
  CLI::App* remote = add(app_, "remote", "Look into the store that hosts share and keep it in order", nullptr);
  remote->require_subcommand(1);
  CLI::App* stats = add(*remote, "stats", "Whether it answers, how fast, and what is there", remote_stats_command);
  CLI::App* verify =
      add(*remote, "verify", "Judge every entry as a host with this policy would", remote_verify_command);
  verify->add_flag("--contents", to.contents, "Fetch every content too, and check it");
  CLI::App* gc = add(*remote, "gc", "Remove the oldest, old epochs, and what no entry states", remote_gc_command);
  gc->add_option("--max-size", to.max_size, "Remove the oldest entries until it is no larger: 500G")->type_name("SIZE");
  gc->add_option("--epoch", to.epoch, "Remove entries that are older than this epoch")->type_name("N");
  gc->add_flag("--dry-run", to.dry_run, "Only say what would go");
  CLI::App* disown = add(*remote, "disown", "Withdraw one entry, or all before an epoch", remote_disown_command);
  disown->add_option("KEY", to.key, "The entry's key, or enough of its beginning")->type_name("");
  disown->add_option("--epoch", to.epoch, "Withdraw every entry that is older than this epoch")->type_name("N");
  for (CLI::App* command : {stats, verify, gc, disown}) {
    command->add_option("--remote", to.remote, "Another one than the settings name: an address or a folder")
        ->type_name("WHERE");
    command->footer(kRemoteFooter);
  }
  for (CLI::App* command : {gc, disown}) {
    command->add_option("--namespace", to.name_space, "Of this namespace alone")->type_name("NAME");
    command->add_flag("-y,--yes", to.yes, "Do not ask");
  }
  remote->footer(kRemoteFooter);
}

void CommandTree::add_key() {
  Arguments& to = parsed_.arguments;
  CLI::App* key = add(app_, "key", "Make, show and certify the keys that sign", nullptr);
  key->require_subcommand(1);
  CLI::App* generate = add(*key, "generate", "Make a key, for this user alone, in a new file", key_generate_command);
  generate->add_option("-o,--output", to.output, "The file, which must not be there yet")
      ->required()
      ->type_name("FILE");
  CLI::App* show = add(*key, "show", "What a key or a certificate is", key_show_command);
  show->add_option("FILE", to.key, "The file of a key or of a certificate, or a public key itself")
      ->required()
      ->type_name("");
  for (CLI::App* command : {key, generate, show}) command->footer(kKeyFooter);
  CLI::App* certify =
      add(*key, "certify", "Let a host's key speak for a live namespace, for some days", key_certify_command);
  certify->add_option("FILE", to.key, "The host's public key, or a file that has it")->required()->type_name("");
  certify->add_option("--key", to.signing_key, "The secret key that certifies: readers have its public one")
      ->required()
      ->type_name("FILE");
  certify->add_option("--namespace", to.name_space, "The live namespace: acme/live")->required()->type_name("NAME");
  certify->add_option("--days", to.days, "For how many days from today on, 1 to 365 (default: 30)")->type_name("N");
  certify->add_option("-o,--output", to.output, "The file, which must not be there yet")->required()->type_name("FILE");
  certify->footer(kCertifyFooter);
}

void CommandTree::add_audit() {
  Arguments& to = parsed_.arguments;
  CLI::App* audit =
      add(app_, "audit", "Say from a trace whether a path is one of the GPU's, and if not why", audit_command);
  audit->add_option("TRACE", to.files, "What a program wrote with KILN_TRACE")->required()->expected(1)->type_name("");
  audit->add_option("--fail-on", to.fail_on, "From which severity on it fails: low, medium (default), high, blocking")
      ->type_name("SEVERITY")
      ->check(one_of("--fail-on"));
  audit->footer(kAuditFooter);
  CLI::App* health = add(app_, "health", "How much of what traces have ran on a device", health_command);
  health->add_option("TRACE", to.files, "What programs wrote with KILN_TRACE")->required()->type_name("");
  health->footer(kHealthFooter);
  CLI::App* report = add(app_, "report", "Make a page of traces: who waited, for what and why", report_command);
  report->add_option("TRACE", to.files, "What programs wrote with KILN_TRACE; runs of one program stand side by side")
      ->required()
      ->type_name("");
  report->add_option("-o,--output", to.output, "The page (default: report.html); - is standard output")
      ->type_name("FILE");
  report->footer(kReportFooter);
}

void CommandTree::add_others() {
  Arguments& to = parsed_.arguments;
  CLI::App* calibrate = add(app_, "calibrate", "Measure from how many rows on a device is worth it", calibrate_command);
  calibrate
      ->add_option("--file", to.calibration,
                   "Keep it here (default: KILN_CALIBRATION, ~/.config/kiln/calibration.json)")
      ->type_name("FILE");
  calibrate->add_flag("--quick", to.quick, "Fewer sizes and runs: rougher");
  calibrate->add_flag("--show", to.show, "Print what is in force, and measure nothing");
  calibrate->footer(kCalibrateFooter);

  CLI::App* config = add(app_, "config", "Show the settings", nullptr);
  config->footer(kConfigFooter);
  config->require_subcommand(1);
  add(*config, "show", "Each setting, its value and where that came from", config_show_command)->footer(kConfigFooter);

  CLI::App* status = add(app_, "status", "How far the programs are that run now", status_command);
  status->add_option("PID", to.pid, "The process (default: all of this user)")->type_name("");
  status->add_flag("-w,--watch", to.watch, "Go on showing it, until Ctrl-C or the end of the process");
  status->footer(kStatusFooter);

  add(app_, "doctor", "What this machine has, what is missing and what to do about it", doctor_command)
      ->footer("Returns 0 when kiln can do useful work here, 3 when it cannot.\n\nExample:\n  kiln doctor --json");
  add(app_, "version", "Print the version", version_command);
  CLI::App* completions = add(app_, "completions", "Print completions for a shell", completions_command);
  completions->add_option("SHELL", to.shell, "bash, zsh or fish")->required()->type_name("")->check(one_of("SHELL"));
  completions->footer(kCompletionsFooter);
  CLI::App* help = app_.add_subcommand("help", "Explain a command")->group("Commands");
  help->add_option("COMMAND", "Which")->type_name("");
}
}  // namespace kiln::cli
