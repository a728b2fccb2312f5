// SPDX-License-Identifier: Apache-2.0
#include "backends/command/command_compiler.hpp"

#include <algorithm>

#include "backends/command/command_dependencies.hpp"
#include "backends/command/command_template.hpp"
#include "backends/command/depfile.hpp"
#include "backends/cuda/cubin.hpp"
#include "backends/kernel_entries.hpp"
#include "backends/source_scan.hpp"
#include "backends/text_facts.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/process/environment.hpp"

namespace kiln {
namespace {

Result<std::string> temporary_directory(const std::string& configured) {
  if (!configured.empty()) return safe_temporary_parent(configured);
  const std::string given = environment_variable("TMPDIR").value_or("");
  return safe_temporary_parent(given.starts_with('/') ? given : "/tmp");
}

Result<std::vector<std::string>> kernels_of(std::string_view bytes, Form form) {
  if (form == Form::Cubin) {
    auto contents = read_cubin(bytes);
    if (!contents) return make_error(Code::Corrupt, contents.error().message);
    return std::move(contents->kernels);
  }
  if (bytes.find(".version") == std::string_view::npos || bytes.find(".target") == std::string_view::npos) {
    return make_error(Code::Corrupt, "not PTX");
  }
  return ptx_kernels(bytes);
}

}  // namespace

// A run of the program that exited by itself.
struct CommandCompiler::Run {
  Result<std::vector<std::string>> directories = std::vector<std::string>();  // header search directories
  BeforeRun before;
  double cost_ms = 0;
  CommandRunner::RunResult ended;
};

CommandCompiler::CommandCompiler(std::string program, FileDigestCache& digests)
    : CommandCompiler(std::move(program), digests, Options()) {}

CommandCompiler::CommandCompiler(std::string program, FileDigestCache& digests, Options options)
    : program_(std::move(program)), digests_(digests), options_(std::move(options)), tools_(program_, digests, runner_),
      failures_(digests) {}

Status CommandCompiler::supports(const Target& target) {
  const auto known = tools_.architectures();
  if (!known) return known.error();
  const std::string& wanted = target.architecture;
  const bool has_form = target.form == Form::Cubin || target.form == Form::Ptx;
  // The list has no variants: a compiler of sm_90 also compiles sm_90a.
  const std::string plain = wanted.substr(0, wanted.find_last_of("0123456789") + 1);
  const bool found = known->empty() || std::find(known->begin(), known->end(), plain) != known->end();
  if (has_form && wanted.starts_with("sm_") && found) return {};
  std::string message = program_ + " does not support " + target.name() + "; it produces cubins and PTX";
  if (!known->empty()) message += " for";
  for (const std::string& architecture : *known) message += " " + architecture;
  return make_error(Code::Unsupported, std::move(message));
}

Status CommandCompiler::check(const Recipe& recipe) {
  const Unit& unit = recipe.unit;
  if (unit.kind() != kind()) {
    return make_error(Code::InvalidArgument,
                      "unit '" + unit.name() + "' is of kind " + unit.kind() + ", not " + kind());
  }
  if (Status good = check_template(unit); !good) return good;
  if (Status good = check_file_names(unit); !good) return good;
  if (unit.options().front() != program_) {
    return make_error(Code::InvalidArgument, "unit '" + unit.name() + "' is for " + unit.options().front() +
                                                 ", and this compiler runs " + program_);
  }
  for (const IncludeRoot& root : unit.include_roots()) {
    // nvcc parses the value of -I as a comma-separated list.
    if (tools_.is_nvcc() && locate(recipe.working_directory, root.path).find(',') != std::string::npos) {
      return make_error(Code::InvalidArgument,
                        "nvcc does not accept the include root " + root.path + ": the path has a comma in it");
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
  if (const Result<std::string> parent = temporary_directory(options_.temporary)) CommandWorkDir::remove_stale(*parent);
}

Result<CommandCompiler::Run> CommandCompiler::run(const Recipe& recipe, const CommandWorkDir& directory,
                                                  const std::stop_token& stop) {
  const auto program = tools_.path();
  if (!program) return program.error();
  Process::SpawnOptions start;
  start.arguments = fill_template(recipe, *program, directory.source());
  start.environment = CommandToolchain::environment(recipe.compiler.environment);
  start.environment.push_back("TMPDIR=" + directory.temporary());
  start.working_directory = directory.working_directory();
  if (directory.descriptor() >= 0)
    start.descriptors.emplace_back(directory.descriptor(), CommandWorkDir::kSourceDescriptor);
  Run run;
  if (has_depfile(recipe.unit)) run.directories = tools_.include_search_paths();
  if (has_depfile(recipe.unit) && run.directories) run.before = look_before_run(recipe, *run.directories);
  run.before.started = system_clock().wall();
  const auto steady = system_clock().steady();
  auto ended = runner_.run(std::move(start), options_.timeout, stop);
  if (!ended) {
    Error error = std::move(ended).error();
    error.message = "unit '" + recipe.unit.name() + "' was not compiled: " + error.message;
    return error;
  }
  run.cost_ms = milliseconds_since(system_clock(), steady);
  run.ended = std::move(*ended);
  return run;
}

Result<CompileResult> CommandCompiler::compile(const Recipe& recipe, const RequestContext& context) {
  if (Status good = check(recipe); !good) return std::move(good).error();
  sweep_once();
  const auto parent = temporary_directory(options_.temporary);
  if (!parent) return parent.error();
  const auto directory = CommandWorkDir::make(*parent, recipe.unit, /*by_descriptor=*/tools_.is_nvcc());
  if (!directory) return directory.error();
  auto ran = run(recipe, *directory, context.stop);
  if (!ran) return std::move(ran).error();
  const std::string& log = ran->ended.output;
  const auto rejected = [&](const std::string& reason) {
    return make_error(Code::CompileFailed, program_ + " cannot compile unit '" + recipe.unit.name() + "': " + reason,
                      log);
  };
  auto bytes = directory->output();
  // A failure to read the output says nothing about the unit.
  if (ran->ended.exit.succeeded() && !bytes) return std::move(bytes).error();
  if (!ran->ended.exit.succeeded() || !*bytes) {
    const Process::Exit exit = ran->ended.exit;
    if (exit.signal != 0) return rejected("it was killed by signal " + std::to_string(exit.signal));
    remember_failure(recipe, *ran, *directory);
    return rejected(exit.code != 0 ? "it exited with code " + std::to_string(exit.code) : "it wrote no output");
  }
  const auto kernels = kernels_of((*bytes)->view(), recipe.target.form);
  if (!kernels) {
    return rejected(std::string("it wrote no ") + to_string(recipe.target.form) + " (" + kernels.error().message +
                    "); check that its command line has {form}");
  }
  auto entries = entries_by_symbol(recipe.unit, *kernels, log);
  if (!entries) return std::move(entries).error();

  CompileResult compiled;
  compiled.artifact.bytes = **bytes;
  compiled.artifact.target = recipe.target;
  compiled.artifact.entries = std::move(*entries);
  compiled.artifact.metadata = {recipe.unit.name(), recipe.compiler.name + " " + recipe.compiler.version, ran->cost_ms,
                                log};
  add_dependency_set(recipe, *ran, *directory, compiled);
  return compiled;
}

std::string CommandCompiler::untracked_inputs(const Recipe& recipe) {
  if (!has_depfile(recipe.unit)) return "its command line has no {depfile}, so its inputs are not known";
  for (const auto& [name, value] : recipe.compiler.environment) {
    if (name != "NVCC_APPEND_FLAGS" && name != "NVCC_PREPEND_FLAGS") continue;
    if (const std::string hidden = find_untracked_input(value); !hidden.empty()) {
      return name + " has " + hidden + ", which can make the compiler read files that kiln does not track";
    }
  }
  if (const std::string macro = time_macro_of(recipe); !macro.empty()) return "the source uses " + macro;
  const auto now = identity({});
  if (!now || now->digest != recipe.compiler.digest) return "the compiler changed while it ran";
  return {};
}

Result<DependencyResult> CommandCompiler::dependency_set_of(const Recipe& recipe, const Run& run,
                                                            const CommandWorkDir& directory, std::string_view bytes) {
  const auto text = directory.depfile();
  if (!text) return text.error();
  if (!*text) return make_error(Code::Unsupported, "the compiler wrote no dependency file");
  const auto dependencies = parse_depfile((*text)->view());
  if (!dependencies) return dependencies.error();
  if (!run.directories) return run.directories.error();
  const auto seen = infer_file_accesses(recipe, *dependencies, *run.directories, run.before);
  if (!seen) return seen.error();
  return build_dependency_set(recipe, *seen, has_debug_options(recipe), bytes, digests_, *run.directories);
}

void CommandCompiler::add_dependency_set(const Recipe& recipe, const Run& run, const CommandWorkDir& directory,
                                         CompileResult& compiled) {
  compiled.artifact.dependency_set = std::make_shared<const DependencySet>();
  compiled.uncacheable_reason = untracked_inputs(recipe);
  if (!compiled.uncacheable_reason.empty()) return;
  auto built = dependency_set_of(recipe, run, directory, compiled.artifact.bytes.view());
  compiled.uncacheable_reason = built ? built->uncacheable_reason : built.error().message;
  if (built) compiled.artifact.dependency_set = std::make_shared<const DependencySet>(std::move(built->dependency_set));
}

// nvcc also writes a dependency file if one of its later steps rejects the unit. If the preprocessor rejects it, there
// is none, and the unit is always compiled again.
void CommandCompiler::remember_failure(const Recipe& recipe, const Run& run, const CommandWorkDir& directory) {
  if (!has_depfile(recipe.unit)) return;
  auto built = dependency_set_of(recipe, run, directory, {});
  if (built && built->uncacheable_reason.empty()) failures_.add(recipe, std::move(built->dependency_set));
}

}  // namespace kiln
