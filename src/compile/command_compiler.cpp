#include "compile/command_compiler.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "base/error.hpp"
#include "compile/command_closure.hpp"
#include "compile/command_template.hpp"
#include "compile/depfile.hpp"
#include "compile/kernel_entries.hpp"
#include "compile/source_text.hpp"
#include "vendor/cubin.hpp"

namespace kiln {
namespace {

std::string temporary_folder(const std::string& configured) {
  if (!configured.empty()) return configured;
  const std::string given = environment_variable("TMPDIR").value_or("");
  return given.starts_with('/') ? given : "/tmp";
}

Result<std::vector<std::string>> kernels_of(std::string_view bytes, Form form) {
  if (form == Form::Cubin) {
    auto contents = read_cubin(bytes);
    if (!contents) return failure(Code::Corrupt, contents.error().message);
    return std::move(contents->kernels);
  }
  if (bytes.find(".version") == std::string_view::npos || bytes.find(".target") == std::string_view::npos) {
    return failure(Code::Corrupt, "no PTX");
  }
  return ptx_kernels(bytes);
}

}  // namespace

// One run of the program that came to an end by itself.
struct CommandCompiler::Run {
  std::chrono::nanoseconds started{};  // wall time
  double cost_ms = 0;
  CommandRunner::Ended ended;
};

CommandCompiler::CommandCompiler(std::string program, FileDigests& digests)
    : CommandCompiler(std::move(program), digests, Options()) {}

CommandCompiler::CommandCompiler(std::string program, FileDigests& digests, Options options)
    : program_(std::move(program)), digests_(digests), options_(std::move(options)), tools_(program_, digests, runner_),
      refusals_(digests) {}

Status CommandCompiler::supports(const Target& target) {
  const auto known = tools_.architectures();
  if (!known) return known.error();
  const std::string& wanted = target.architecture;
  const bool has_form = target.form == Form::Cubin || target.form == Form::Ptx;
  // The list has no variants: sm_90a is compiled by whoever compiles sm_90.
  const std::string plain = wanted.substr(0, wanted.find_last_of("0123456789") + 1);
  const bool found = known->empty() || std::find(known->begin(), known->end(), plain) != known->end();
  if (has_form && wanted.starts_with("sm_") && found) return {};
  std::string message = program_ + " does not compile for " + target.name() + "; it makes cubins and PTX";
  if (!known->empty()) message += " for";
  for (const std::string& architecture : *known) message += " " + architecture;
  return failure(Code::Unsupported, std::move(message));
}

Status CommandCompiler::check(const Recipe& recipe) {
  const Unit& unit = recipe.unit;
  if (unit.kind() != kind()) {
    return failure(Code::InvalidArgument, "unit '" + unit.name() + "' is of kind " + unit.kind() + ", not " + kind());
  }
  if (Status good = check_template(unit); !good) return good;
  if (Status good = check_file_names(unit); !good) return good;
  if (unit.options().front() != program_) {
    return failure(Code::InvalidArgument, "unit '" + unit.name() + "' is for " + unit.options().front() +
                                              ", and this compiler runs " + program_);
  }
  for (const IncludeRoot& root : unit.include_roots()) {
    // nvcc takes what is behind -I for a list.
    if (tools_.is_nvcc() && join_path(recipe.working_directory, root.path).find(',') != std::string::npos) {
      return failure(Code::InvalidArgument,
                     "nvcc cannot be given the include root " + root.path + ": the path has a comma in it");
    }
  }
  return supports(recipe.target);
}

void CommandCompiler::sweep_once() {
  {
    const MutexLock lock(mutex_);
    if (swept_) return;
    swept_ = true;
  }
  CommandFolder::sweep(temporary_folder(options_.temporary));
}

Result<CommandCompiler::Run> CommandCompiler::run(const Recipe& recipe, const CommandFolder& folder) {
  const auto program = tools_.path();
  if (!program) return program.error();
  Process::Start start;
  start.arguments = fill_template(recipe, *program, folder.source());
  start.environment = CommandTools::environment(recipe.compiler.environment);
  start.environment.push_back("TMPDIR=" + folder.temporary());
  start.folder = folder.work();
  if (folder.descriptor() >= 0) start.descriptors.emplace_back(folder.descriptor(), CommandFolder::kSourceDescriptor);
  Run run;
  run.started = system_clock().wall();
  const auto steady = system_clock().steady();
  auto ended = runner_.run(std::move(start), options_.limit, recipe.stop);
  if (!ended) {
    Error error = std::move(ended).error();
    error.message = "unit '" + recipe.unit.name() + "' was not compiled: " + error.message;
    return error;
  }
  run.cost_ms = milliseconds_since(system_clock(), steady);
  run.ended = std::move(*ended);
  return run;
}

Result<Compiled> CommandCompiler::compile(const Recipe& recipe) {
  if (Status good = check(recipe); !good) return std::move(good).error();
  sweep_once();
  const auto folder =
      CommandFolder::make(temporary_folder(options_.temporary), recipe.unit, /*by_descriptor=*/tools_.is_nvcc());
  if (!folder) return folder.error();
  auto ran = run(recipe, *folder);
  if (!ran) return std::move(ran).error();
  const std::string& log = ran->ended.output;
  const auto refused = [&](const std::string& why) {
    return failure(Code::CompileFailed, program_ + " does not compile unit '" + recipe.unit.name() + "': " + why, log);
  };
  auto bytes = folder->output();
  // That it cannot be read says nothing of the unit.
  if (ran->ended.exit.clean() && !bytes) return std::move(bytes).error();
  if (!ran->ended.exit.clean() || !*bytes) {
    const Process::Exit exit = ran->ended.exit;
    if (exit.signal != 0) return refused("it was ended by signal " + std::to_string(exit.signal));
    remember_failure(recipe, *ran, *folder);
    return refused(exit.code != 0 ? "it ended with code " + std::to_string(exit.code) : "it left no output");
  }
  const auto kernels = kernels_of((*bytes)->view(), recipe.target.form);
  if (!kernels) {
    return refused(std::string("it left no ") + to_string(recipe.target.form) + " (" + kernels.error().message +
                   "); does its command line have {form}?");
  }
  auto entries = entries_by_symbol(recipe.unit, *kernels, log);
  if (!entries) return std::move(entries).error();

  Compiled compiled;
  compiled.artifact.bytes = **bytes;
  compiled.artifact.target = recipe.target;
  compiled.artifact.entries = std::move(*entries);
  compiled.artifact.about = {recipe.unit.name(), recipe.compiler.name + " " + recipe.compiler.version, ran->cost_ms,
                             log};
  add_closure(recipe, *ran, *folder, compiled);
  return compiled;
}

std::string CommandCompiler::hidden_inputs(const Recipe& recipe) {
  if (!has_depfile(recipe.unit)) return "its command line has no {depfile}, so that what it read is not known";
  for (const auto& [name, value] : recipe.compiler.environment) {
    if (name != "NVCC_APPEND_FLAGS" && name != "NVCC_PREPEND_FLAGS") continue;
    if (const std::string hidden = names_hidden_input(value); !hidden.empty()) {
      return name + " has " + hidden + ", by which the compiler may read what kiln does not see";
    }
  }
  if (const std::string macro = time_macro_of(recipe); !macro.empty()) return "the source uses " + macro;
  const auto now = identity();
  if (!now || now->digest != recipe.compiler.digest) return "the compiler changed while it ran";
  return {};
}

Result<BuiltClosure> CommandCompiler::closure_of(const Recipe& recipe, const Run& run, const CommandFolder& folder,
                                                 std::string_view bytes) {
  const auto text = folder.depfile();
  if (!text) return text.error();
  if (!*text) return failure(Code::Unsupported, "it left no dependency file");
  const auto dependencies = parse_depfile((*text)->view());
  if (!dependencies) return dependencies.error();
  const auto folders = tools_.search_folders();
  if (!folders) return folders.error();
  const auto seen = observations_of(recipe, *dependencies, *folders, run.started);
  if (!seen) return seen.error();
  return build_closure(recipe, *seen, has_debug_options(recipe), bytes, digests_, *folders);
}

void CommandCompiler::add_closure(const Recipe& recipe, const Run& run, const CommandFolder& folder,
                                  Compiled& compiled) {
  compiled.artifact.closure = std::make_shared<const Closure>();
  compiled.not_cacheable = hidden_inputs(recipe);
  if (!compiled.not_cacheable.empty()) return;
  auto built = closure_of(recipe, run, folder, compiled.artifact.bytes.view());
  compiled.not_cacheable = built ? built->not_cacheable : built.error().message;
  if (built) compiled.artifact.closure = std::make_shared<const Closure>(std::move(built->closure));
}

// nvcc leaves a dependency file also where its later steps refuse the unit; where the preprocessor does, there is none,
// and the unit is always worth another try.
void CommandCompiler::remember_failure(const Recipe& recipe, const Run& run, const CommandFolder& folder) {
  if (!has_depfile(recipe.unit)) return;
  auto built = closure_of(recipe, run, folder, {});
  if (built && built->not_cacheable.empty()) refusals_.remember(recipe, std::move(built->closure));
}

}  // namespace kiln
