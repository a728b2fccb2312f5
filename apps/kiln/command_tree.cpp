// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/command_tree.hpp"

#include <utility>

#include <kiln/cccl.hpp>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/help_texts.hpp"

namespace kiln::cli {

// The values that an option or argument accepts. CLI11's validators cannot be queried for them.
std::vector<std::string> choices_of(const std::string& name) {
  if (name == "--backend") return {"cuda", "opencl"};
  if (name == "--cccl") {
    std::vector<std::string> names = {"all"};
    for (const cccl::Spec& spec : cccl::predefined_specs()) names.push_back(spec.name);
    return names;
  }
  if (name == "--format") return {"cccl", "cuda.compute"};
  if (name == "SHELL") return {"bash", "zsh", "fish"};
  if (name == "--fail-on") return {"low", "medium", "high", "blocking"};
  if (name == "--arch") {  // completions offer these; other architectures are accepted, too
    return {"native", "sm_75",  "sm_80",   "sm_86",  "sm_87",  "sm_88",  "sm_89",      "sm_90",
            "sm_90a", "sm_100", "sm_100a", "sm_103", "sm_110", "sm_120", "compute_80", "compute_90"};
  }
  return {};
}

namespace {

// A validator without CLI11's description, because the help line already lists the values.
CLI::Validator one_of(const std::string& name) {
  CLI::Validator validator = CLI::IsMember(choices_of(name));
  validator.description("");
  return validator;
}

}  // namespace

void add_list(CLI::App& command, const char* name, std::vector<std::string>& values, const char* type,
              const char* about) {
  command.add_option(name, values, about)
      ->expected(1)
      ->type_name(type)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CommandTree::CommandTree() : app_(kAbout, "kiln") {
  app_.require_subcommand(0, 1);
  app_.set_help_flag("-h,--help", "Print this help and exit");
  const auto format = app_.get_formatter();
  format->column_width(30);
  format->label("SUBCOMMAND", "COMMAND");
  format->label("SUBCOMMANDS", "COMMANDS");
  format->label("Positionals", "Arguments");
  format->label("REQUIRED", "");
  app_.add_flag("-V,--version", wants_version_, "Print the version and exit");
  add_compile_and_explain();
  add_split();
  add_warm();
  add_bundle();
  add_cache();
  add_remote();
  add_key();
  add_jit();
  add_setup();
  add_audit();
  add_others();
  app_.footer(kMainFooter);  // last: a subcommand inherits the footer that its parent has when it is added
}

CLI::App* CommandTree::add(CLI::App& parent, const char* name, const char* about, Run run) {
  CLI::App* command = parent.add_subcommand(name, about);
  command->group("Commands");
  Arguments& to = parsed_.arguments;
  if (run != nullptr) {
    command->final_callback([this, run] { parsed_.command = run; });
    command->add_flag("--json", to.json, "Print JSON");
    command->add_flag("-v,--verbose", to.verbose, "Print each event on standard error");
    command->add_flag("-q,--quiet", to.quiet, "Print errors only, no warnings and no progress");
  }
  return command;
}

void CommandTree::add_architectures(CLI::App& command) {
  command
      .add_option("--arch", parsed_.arguments.architectures,
                  "Targets: sm_90, compute_90 (PTX), lto_90 (LTO-IR), native (devices here)")
      ->delimiter(',')
      ->expected(1)
      ->type_name("LIST")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void CommandTree::add_unit_options(CLI::App& command) {
  Arguments& to = parsed_.arguments;
  command.add_option("FILE", to.files, "Sources: .cu (CUDA C++) or .cl (OpenCL C); - is standard input")->type_name("");
  add_list(command, "--cccl", to.cccl, "SPEC", "CCCL algorithm: predefined spec, 'all' (18 specs), or JSON");
  command.add_option("--manifest", to.manifest, "kiln.toml that lists units and architectures")->type_name("FILE");
  add_source_options(command, "Kernel to look up in the result; for CUDA any name expression");
  add_list(command, "--sentinel", to.sentinels, "DIR=FILE", "Check FILE instead of every header below DIR");
}

void CommandTree::add_source_options(CLI::App& command, const char* about_entry) {
  Arguments& to = parsed_.arguments;
  command.add_option("--backend", to.backend, "cuda or opencl (default: by the file extension)")
      ->type_name("NAME")
      ->check(one_of("--backend"));
  add_architectures(command);
  add_list(command, "-e,--entry", to.entries, "NAME", about_entry);
  add_list(command, "-I,--include", to.include_directories, "DIR", "Directory to search for headers");
  add_list(command, "-D,--define", to.definitions, "X[=Y]", "Macro definition");
  add_list(command, "--option", to.options, "TEXT", "Option to pass to the compiler unchanged");
  command.add_option("--name", to.name, "Program name for the compiler (default: the file name)")->type_name("NAME");
}

void CommandTree::add_split() {
  Arguments& to = parsed_.arguments;
  CLI::App* split = add(app_, "split", "Write a kiln.toml for a file with many kernel instances", split_command);
  split->add_option("FILE", to.files, "Source: .cu (CUDA C++) or .cl (OpenCL C)")
      ->required()
      ->expected(1)
      ->type_name("");
  add_source_options(*split, "Further instance of a template, for example 'scale<float>'");
  split->add_option("-o,--output", to.output, "Output file (default: kiln.toml)")->type_name("FILE");
  split->add_flag("--force", to.force, "Replace existing files");
  split->footer(kSplitFooter);
}

void CommandTree::add_compile_and_explain() {
  Arguments& to = parsed_.arguments;
  CLI::App* compile = add(app_, "compile", "Compile units, or load them from a cache", compile_command);
  add_unit_options(*compile);
  compile->add_option("-o,--output", to.output, "Output file, - or directory (created if it ends in /)")
      ->type_name("PATH");
  compile->add_option("--format", to.format, "Write CCCL algorithms as cccl or cuda.compute reads them")
      ->type_name("FORM")
      ->check(one_of("--format"));
  compile->add_option("-j,--jobs", to.jobs, "Number of parallel compiles (default: one per core)")->type_name("N");
  compile->footer(kCompileFooter);

  CLI::App* explain = add(app_, "explain", "Predict cache hit or miss, and show which input changed", explain_command);
  add_unit_options(*explain);
  explain->add_flag("--check", to.check, "Return 1 if a unit would be compiled or is missing from the bundles");
  explain->add_option("--profile", to.profile, "Profile of requested units; list those that the bundles lack")
      ->type_name("FILE");
  explain->add_option("--bundle", to.bundles, "Bundle to compare the profile with (default: the setting 'bundles')")
      ->expected(1)
      ->type_name("BUNDLE")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_list(*explain, "--external", to.external, "SYSTEM[/ENTRY]", "Entries of another system, as 'kiln jit explain'");
  explain->footer(kExplainFooter);
}

void CommandTree::add_warm() {
  Arguments& to = parsed_.arguments;
  CLI::App* warm = add(app_, "warm", "Fill the caches of this node: fetch units, compile the rest", warm_command);
  warm->add_option("--from", to.from, "kiln.toml, profile (.jsonl) or bundle that lists the units")
      ->required()
      ->type_name("FILE");
  warm->add_option("--manifest", to.manifest, "kiln.toml with the sources of a profile (default: kiln.toml)")
      ->type_name("FILE");
  add_architectures(*warm);
  warm->add_option("-j,--jobs", to.jobs, "Number of parallel jobs (default: one per core)")->type_name("N");
  warm->footer(kWarmFooter);
}

void CommandTree::add_cache() {
  Arguments& to = parsed_.arguments;
  CLI::App* cache = add(app_, "cache", "Inspect and maintain the cache", nullptr);
  cache->require_subcommand(1);
  add(*cache, "stats", "Show number and size of entries", cache_stats_command);
  add(*cache, "ls", "List entries, most recently used first", cache_ls_command);
  CLI::App* show = add(*cache, "show", "Show the details of one entry", cache_show_command);
  CLI::App* extract = add(*cache, "extract", "Write the compiled code of one entry to a file", cache_extract_command);
  for (CLI::App* command : {show, extract}) {
    command->add_option("KEY", to.key, "Key of the entry, or a unique prefix")->required()->type_name("");
  }
  extract->add_option("-o,--output", to.output, "Output file; - is standard output")->required()->type_name("FILE");
  CLI::App* gc = add(*cache, "gc", "Evict entries over the size limit and remove stale files", cache_gc_command);
  gc->add_option("--max-size", to.max_size, "Size limit for this run, for example 5G (default: cache.max_size)")
      ->type_name("SIZE");
  add(*cache, "verify", "Verify every entry and remove corrupt ones", cache_verify_command);
  CLI::App* clear = add(*cache, "clear", "Remove every entry", cache_clear_command);
  clear->add_flag("-y,--yes", to.yes, "Do not ask for confirmation");
  cache->footer(kCacheFooter);
}

void CommandTree::add_remote() {
  Arguments& to = parsed_.arguments;
  CLI::App* remote = add(app_, "remote", "Inspect and maintain the remote store", nullptr);
  remote->require_subcommand(1);
  CLI::App* stats = add(*remote, "stats", "Show response time, number and size of entries", remote_stats_command);
  CLI::App* verify =
      add(*remote, "verify", "Verify every entry against the trust policy of this machine", remote_verify_command);
  verify->add_flag("--download", to.download, "Also download and check the content of every entry");
  CLI::App* gc =
      add(*remote, "gc", "Remove the oldest entries, old epochs and unreferenced content", remote_gc_command);
  gc->add_option("--max-size", to.max_size, "Remove the oldest entries until the store fits, for example 500G")
      ->type_name("SIZE");
  gc->add_option("--before-epoch", to.epoch, "Remove entries with an epoch lower than N")->type_name("N");
  gc->add_flag("--dry-run", to.dry_run, "Print what would be removed and remove nothing");
  CLI::App* rm = add(*remote, "rm", "Remove one entry, or all entries before an epoch", remote_rm_command);
  rm->add_option("KEY", to.key, "Key of the entry, or a unique prefix")->type_name("");
  rm->add_option("--before-epoch", to.epoch, "Remove every entry with an epoch lower than N")->type_name("N");
  for (CLI::App* command : {stats, verify, gc, rm}) {
    command->add_option("--remote", to.remote, "URL or directory of the store (default: the setting 'remote.url')")
        ->type_name("WHERE");
    command->footer(kRemoteFooter);
  }
  for (CLI::App* command : {gc, rm}) {
    command->add_option("--namespace", to.name_space, "Only entries of this namespace")->type_name("NAME");
    command->add_flag("-y,--yes", to.yes, "Do not ask for confirmation");
  }
  remote->footer(kRemoteFooter);
}

void CommandTree::add_key() {
  Arguments& to = parsed_.arguments;
  CLI::App* key = add(app_, "key", "Create, show and certify signing keys", nullptr);
  key->require_subcommand(1);
  CLI::App* generate =
      add(*key, "generate", "Create a signing key in a new file that only this user can read", key_generate_command);
  generate->add_option("-o,--output", to.output, "Output file; must not exist")->required()->type_name("FILE");
  CLI::App* show = add(*key, "show", "Show a key or a certificate", key_show_command);
  show->add_option("FILE", to.key, "File of a key or certificate, or the text of a public key")
      ->required()
      ->type_name("");
  for (CLI::App* command : {key, generate, show}) command->footer(kKeyFooter);
  CLI::App* certify = add(*key, "certify", "Allow the key of a host to sign for a live namespace", key_certify_command);
  certify->add_option("FILE", to.key, "Public key of the host, or a file that contains it")->required()->type_name("");
  certify->add_option("--key", to.signing_key, "Secret key of the authority; policies list its public key")
      ->required()
      ->type_name("FILE");
  certify->add_option("--namespace", to.name_space, "Live namespace, for example acme/live")
      ->required()
      ->type_name("NAME");
  certify->add_option("--days", to.days, "Days of validity from today, 1 to 365 (default: 30)")->type_name("N");
  certify->add_option("-o,--output", to.output, "Output file; must not exist")->required()->type_name("FILE");
  certify->footer(kCertifyFooter);
}

void CommandTree::add_audit() {
  Arguments& to = parsed_.arguments;
  CLI::App* audit = add(app_, "audit", "Analyze a trace for host fallbacks, copies and synchronization", audit_command);
  audit
      ->add_option("TRACE", to.files,
                   "Trace from KILN_TRACE, PyTorch's profiler or Nsight Systems; two are compared; none is needed with "
                   "--source")
      ->expected(-1)
      ->type_name("");
  audit->add_option("--source", to.source, "Search the CUDA C++ and Python sources below DIR, too")->type_name("DIR");
  audit->add_option("--fail-on", to.fail_on, "Lowest severity that fails: low, medium (default), high, blocking")
      ->type_name("SEVERITY")
      ->check(one_of("--fail-on"));
  audit->footer(kAuditFooter);
  CLI::App* usage =
      add(app_, "device-usage", "Show which share of the runs in traces used a device", device_usage_command);
  usage->add_option("TRACE", to.files, "Traces that programs wrote with KILN_TRACE")->required()->type_name("");
  usage->footer(kDeviceUsageFooter);
  CLI::App* report = add(app_, "report", "Write an HTML report of traces: waits, units, causes", report_command);
  report->add_option("TRACE", to.files, "Traces from KILN_TRACE; runs of one program are shown side by side")
      ->required()
      ->type_name("");
  report->add_option("-o,--output", to.output, "Output page (default: report.html); - is standard output")
      ->type_name("FILE");
  report->footer(kReportFooter);
}

void CommandTree::add_others() {
  Arguments& to = parsed_.arguments;
  CLI::App* calibrate =
      add(app_, "calibrate", "Measure at which size a device is faster than the CPU", calibrate_command);
  calibrate
      ->add_option("--file", to.calibration, "Output file (default: KILN_CALIBRATION, ~/.config/kiln/calibration.json)")
      ->type_name("FILE");
  calibrate->add_flag("--quick", to.quick, "Measure fewer sizes and runs; less accurate");
  calibrate->add_flag("--show", to.show, "Print the current calibration and measure nothing");
  calibrate->footer(kCalibrateFooter);

  CLI::App* config = add(app_, "config", "Show the settings", nullptr);
  config->footer(kConfigFooter);
  config->require_subcommand(1);
  add(*config, "show", "Show each setting, its value and its source", config_show_command)->footer(kConfigFooter);

  CLI::App* status = add(app_, "status", "Show the progress of running programs", status_command);
  status->add_option("PID", to.pid, "Process id (default: all processes of this user)")->type_name("");
  status->add_flag("-w,--watch", to.watch, "Update until Ctrl-C or the end of the process");
  status->footer(kStatusFooter);

  add(app_, "doctor", "Check this machine and suggest fixes", doctor_command)
      ->footer("Returns 0 if kiln can compile on this machine, 3 if not.\n\nExample:\n  kiln doctor --json");
  CLI::App* selftest = add(app_, "selftest", "Test the devices of this machine and write a report", selftest_command);
  selftest->add_option("-o,--output", to.output, "New directory (default: kiln-selftest)")->type_name("DIR");
  selftest->add_flag("--quick", to.quick, "Fewer elements and algorithms");
  selftest->footer(kSelftestFooter);
  add(app_, "version", "Print the version", version_command);
  CLI::App* completions = add(app_, "completions", "Print completions for a shell", completions_command);
  completions->add_option("SHELL", to.shell, "bash, zsh or fish")->required()->type_name("")->check(one_of("SHELL"));
  completions->footer(kCompletionsFooter);
  add(app_, "man", "Print the manual page", man_command)->footer(kManFooter);
  CLI::App* help = app_.add_subcommand("help", "Print the help of a command")->group("Commands");
  help->add_option("COMMAND", "Command")->type_name("");
}
}  // namespace kiln::cli
