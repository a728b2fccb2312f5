// The only source that includes CLI11, which takes seconds to compile.
#include "apps/kiln/command_line.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>

#include <kiln/cccl.hpp>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/help_texts.hpp"
#include "session/settings.hpp"

namespace kiln::cli {
namespace {

// The values that an option takes, where there are only so many. CLI11's own validators cannot be asked.
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

// Without CLI11's own words for it in the help, which says it already.
CLI::Validator one_of(const std::string& name) {
  CLI::Validator validator = CLI::IsMember(choices_of(name));
  validator.description("");
  return validator;
}

CommandNode node_of(const CLI::App& app) {
  CommandNode node{app.get_name(), app.get_description(), {}, {}, false, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      node.choices = choices_of(option->get_name(true));
      const std::string name = option->get_name(true);
      node.takes_files =
          node.takes_files || name == "FILE" || name == "MANIFEST" || name == "BUNDLE" || name == "TRACE";
      continue;
    }
    CommandNode::Option out;
    for (const std::string& name : option->get_snames()) out.names.push_back('-' + name);
    for (const std::string& name : option->get_lnames()) out.names.push_back("--" + name);
    out.help = option->get_description();
    out.takes_value = option->get_type_size_max() > 0 && option->get_expected_max() > 0;
    out.choices = choices_of(out.names.back());
    node.options.push_back(std::move(out));
  }
  for (const CLI::App* command : app.get_subcommands({})) node.commands.push_back(node_of(*command));
  return node;
}

class CommandLine {
 public:
  CommandLine();
  Parsed parse(std::vector<std::string> arguments);

 private:
  using Run = int (*)(const Arguments&, Console&);

  CLI::App* add(CLI::App& parent, const char* name, const char* about, Run run);
  void add_unit_options(CLI::App& command);
  void add_architectures(CLI::App& command);
  void add_compile_and_explain();
  void add_bundle();
  void add_bundle_units(CLI::App& bundle);
  void add_speaker(CLI::App& command);
  void add_cache();
  void add_key();
  void add_audit();
  void add_others();
  Parsed help(const std::vector<std::string>& path, int exit_code) const;

  CLI::App app_{kAbout, "kiln"};
  Parsed parsed_;
  bool wants_version_ = false;
};

CommandLine::CommandLine() {
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
  add_bundle();
  add_cache();
  add_key();
  add_audit();
  add_others();
  app_.footer(kMainFooter);  // last: a command takes over the footer that its parent has when it is added
}

CLI::App* CommandLine::add(CLI::App& parent, const char* name, const char* about, Run run) {
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

void CommandLine::add_architectures(CLI::App& command) {
  command
      .add_option("--arch", parsed_.arguments.architectures,
                  "Targets: sm_90 (machine code), compute_90 (PTX), lto_90 (LTO-IR)")
      ->delimiter(',')
      ->expected(1)
      ->type_name("LIST")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void CommandLine::add_unit_options(CLI::App& command) {
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

void CommandLine::add_compile_and_explain() {
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

// Who a bundle that is written speaks for, and who vouches for it.
void CommandLine::add_speaker(CLI::App& command) {
  Arguments& to = parsed_.arguments;
  command.add_option("--key", to.signing_key, "Sign it with this secret key ('kiln key generate' makes one)")
      ->type_name("FILE");
  command.add_option("--namespace", to.name_space, "Whom it speaks for: acme/vision")->type_name("NAME");
  command.add_option("--epoch", to.epoch, "As of when: a number that grows, so that older ones can be refused")
      ->type_name("N");
}

void CommandLine::add_bundle() {
  Arguments& to = parsed_.arguments;
  CLI::App* bundle = add(app_, "bundle", "Build ahead of time what machines without a compiler load", nullptr);
  bundle->require_subcommand(1);
  CLI::App* create = add(*bundle, "create", "Compile what a kiln.toml lists into one file", bundle_create_command);
  create->add_option("MANIFEST", to.manifest, "A kiln.toml, which lists units and architectures")
      ->required()
      ->type_name("");
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

void CommandLine::add_bundle_units(CLI::App& bundle) {
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

void CommandLine::add_cache() {
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

void CommandLine::add_key() {
  Arguments& to = parsed_.arguments;
  CLI::App* key = add(app_, "key", "Make and show the keys that sign bundles", nullptr);
  key->require_subcommand(1);
  CLI::App* generate = add(*key, "generate", "Make a key, for this user alone, in a new file", key_generate_command);
  generate->add_option("-o,--output", to.output, "The file, which must not be there yet")
      ->required()
      ->type_name("FILE");
  CLI::App* show = add(*key, "show", "The public key and the id of a key", key_show_command);
  show->add_option("FILE", to.key, "The file of a secret key, or a public key itself")->required()->type_name("");
  for (CLI::App* command : {key, generate, show}) command->footer(kKeyFooter);
}

void CommandLine::add_audit() {
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
}

void CommandLine::add_others() {
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

  add(app_, "doctor", "What this machine has, what is missing and what to do about it", doctor_command)
      ->footer("Returns 0 when kiln can do useful work here, 3 when it cannot.\n\nExample:\n  kiln doctor --json");
  add(app_, "version", "Print the version", version_command);
  CLI::App* completions = add(app_, "completions", "Print completions for a shell", completions_command);
  completions->add_option("SHELL", to.shell, "bash, zsh or fish")->required()->type_name("")->check(one_of("SHELL"));
  completions->footer(kCompletionsFooter);
  CLI::App* help = app_.add_subcommand("help", "Explain a command")->group("Commands");
  help->add_option("COMMAND", "Which")->type_name("");
}

const CLI::App* find_command(const CLI::App& parent, const std::string& name) {
  for (const CLI::App* command : parent.get_subcommands({})) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

std::vector<std::string_view> command_names(const CLI::App& parent) {
  std::vector<std::string_view> names;
  for (const CLI::App* command : parent.get_subcommands({})) names.emplace_back(command->get_name());
  return names;
}

std::string unknown_command(const CLI::App& parent, const std::string& name) {
  std::string text = "there is no command '" + name + "'";
  if (const std::string meant = closest(name, command_names(parent)); !meant.empty()) {
    text += "; did you mean '" + meant + "'?";
  }
  return text;
}

Parsed usage_error(const std::string& message, const std::string& command) {
  return {.text = "kiln: error: " + message + "\nTry '" + command + " --help'.", .exit_code = kUsage};
}

Parsed CommandLine::help(const std::vector<std::string>& path, int exit_code) const {
  const CLI::App* command = &app_;
  std::string prefix;
  for (const std::string& name : path) {
    prefix += (prefix.empty() ? "" : " ") + command->get_name();
    const CLI::App* next = find_command(*command, name);
    if (next == nullptr) return usage_error(unknown_command(*command, name), prefix);
    command = next;
  }
  return {.text = command->help(prefix), .exit_code = exit_code};
}

Parsed CommandLine::parse(std::vector<std::string> arguments) {
  // Before CLI11 sees it, which would explain `help` instead.
  if (!arguments.empty() && arguments.front() == "help") return help({arguments.begin() + 1, arguments.end()}, kDone);
  // What stands behind "--" is the compiler's, or a program and its arguments.
  const auto marker = std::find(arguments.begin(), arguments.end(), "--");
  std::vector<std::string> behind(marker == arguments.end() ? marker : marker + 1, arguments.end());
  arguments.erase(marker, arguments.end());
  std::vector<std::string> path;  // the commands as far as they are known: for messages
  const CLI::App* reached = &app_;
  for (const std::string& word : arguments) {
    const CLI::App* next = find_command(*reached, word);
    if (next == nullptr) break;
    reached = next;
    path.push_back(word);
  }
  std::string name = "kiln";
  for (const std::string& word : path) name += ' ' + word;
  const bool group = !reached->get_subcommands({}).empty();
  if (group && arguments.size() == path.size()) return help(path, kUsage);
  if (group && arguments[path.size()].front() != '-') {
    return usage_error(unknown_command(*reached, arguments[path.size()]), name);
  }

  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    app_.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    return help(path, kDone);
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what(), name);
  }
  if (wants_version_) parsed_.command = version_command;
  if (parsed_.command == nullptr) return help({}, kUsage);
  const bool for_compiler = parsed_.command == compile_command || parsed_.command == explain_command;
  if (parsed_.command == calibrate_command) {
    parsed_.arguments.program = std::move(behind);
  } else if (!behind.empty() && !for_compiler) {
    return usage_error("only compile and explain take compiler options behind '--', and calibrate a program", name);
  } else {
    std::vector<std::string>& options = parsed_.arguments.options;
    options.insert(options.end(), behind.begin(), behind.end());
  }
  if (parsed_.command == completions_command) parsed_.arguments.tree = node_of(app_);
  return std::move(parsed_);
}

}  // namespace

Parsed parse_command_line(std::vector<std::string> arguments) { return CommandLine().parse(std::move(arguments)); }

}  // namespace kiln::cli
