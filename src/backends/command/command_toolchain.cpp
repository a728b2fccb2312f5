// SPDX-License-Identifier: Apache-2.0
#include "backends/command/command_toolchain.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/process/environment.hpp"
#include "base/text.hpp"

namespace kiln {
namespace {

constexpr std::chrono::milliseconds kAskLimit{30'000};

// Environment variables from which nvcc or its host compiler takes inputs, sorted by name. The program gets only these,
// so that every relevant variable is part of the key.
constexpr const char* kVariables[] = {"COMPILER_PATH",      "CPATH",           "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH",
                                      "GCC_COMPARE_DEBUG",  "GCC_EXEC_PREFIX", "NVCC_APPEND_FLAGS",  "NVCC_CCBIN",
                                      "NVCC_PREPEND_FLAGS", "NVVM_IR_VER_CHK", "SOURCE_DATE_EPOCH"};
constexpr const char* kPaths[] = {"PATH", "LD_LIBRARY_PATH"};

std::string real_path(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string text(resolved);
  free(resolved);
  return text;
}

// Returns the number after `#define name` in a toolkit header.
int defined_number(const std::string& header, std::string_view name) {
  const auto text = read_file(header);
  if (!text || !*text) return 0;
  const std::string_view view = (*text)->view();
  const std::size_t at = view.find("#define " + std::string(name));
  if (at == std::string_view::npos) return 0;
  const std::string rest(view.substr(at + 8 + name.size(), 32));
  return atoi(rest.c_str());
}

}  // namespace

std::string find_program(const std::string& name, const std::string& path) {
  const auto usable = [](const std::string& file) { return !is_directory(file) && access(file.c_str(), X_OK) == 0; };
  if (name.find('/') != std::string::npos) return name.front() == '/' && usable(name) ? name : std::string();
  for (const std::string_view directory : split(path, ':')) {
    std::string file = std::string(directory) + "/" + name;
    // A relative directory would depend on the working directory.
    if (directory.starts_with('/') && usable(file)) return file;
  }
  return {};
}

std::vector<std::string> directories_of_search_list(const std::string& printed) {
  constexpr std::string_view kNotThere = "ignoring nonexistent directory \"";
  std::vector<std::string> missing;
  std::vector<std::string> directories;
  bool within = false;
  for (const std::string_view line : split(printed, '\n')) {
    if (line.starts_with(kNotThere) && line.ends_with('"')) {
      missing.emplace_back(line.substr(kNotThere.size(), line.size() - kNotThere.size() - 1));
    } else if (line.starts_with("#include ") && line.ends_with("search starts here:")) {
      within = true;
    } else if (line.starts_with("End of search list")) {
      within = false;
    } else if (within && line.starts_with(' ')) {
      directories.emplace_back(line.substr(1));
    }
  }
  directories.insert(directories.begin(), missing.begin(), missing.end());
  return directories;
}

std::vector<std::string> includes_of_dryrun(const std::string& printed) {
  std::vector<std::string> arguments;
  for (const std::string_view line : split(printed, '\n')) {
    if (!line.starts_with("#$ INCLUDES=") && !line.starts_with("#$ SYSTEM_INCLUDES=")) continue;
    for (std::size_t open = line.find('"'); open != std::string_view::npos;) {
      const std::size_t close = line.find('"', open + 1);
      if (close == std::string_view::npos) break;
      arguments.emplace_back(line.substr(open + 1, close - open - 1));
      open = line.find('"', close + 1);
    }
  }
  return arguments;
}

CommandToolchain::CommandToolchain(std::string program, FileDigestCache& digests, CommandRunner& runner)
    : program_(std::move(program)), digests_(digests), runner_(runner) {}

Result<std::string> CommandToolchain::path() const {
  std::string found = find_program(program_, environment_variable("PATH").value_or(""));
  if (!found.empty()) return found;
  return make_error(Code::Unavailable,
                    "the compiler " + program_ + " was not found; add its directory to PATH or give its absolute path");
}

bool CommandToolchain::is_nvcc() const { return file_name(program_) == "nvcc"; }

std::vector<std::string> CommandToolchain::environment(const std::vector<std::pair<std::string, std::string>>& inputs) {
  // Messages do not depend on the user's locale.
  std::vector<std::string> variables{"LC_ALL=C"};
  for (const auto& [name, value] : environment_variables(kPaths)) variables.push_back(name + "=" + value);
  for (const auto& [name, value] : inputs) variables.push_back(name + "=" + value);
  return variables;
}

Result<std::string> CommandToolchain::run_cached(const std::vector<std::string>& arguments) {
  const auto stamp = stamp_of(arguments.front().c_str());
  if (!stamp) return make_error(Code::Unavailable, arguments.front() + " cannot be read");
  Process::SpawnOptions start;
  start.arguments = arguments;
  start.environment = environment(environment_variables(kVariables));
  start.working_directory = "/";
  std::vector<std::string> question = arguments;
  question.insert(question.end(), start.environment.begin(), start.environment.end());
  {
    const MutexLock lock(mutex_);
    const auto known = output_cache_.find(question);
    if (known != output_cache_.end() && known->second.stamp == *stamp) return known->second.text;
  }
  // nvcc writes temporary files for some queries. TMPDIR is not an input: the output does not depend on it.
  if (const auto directory = environment_variable("TMPDIR")) start.environment.push_back("TMPDIR=" + *directory);
  auto ended = runner_.run(std::move(start), kAskLimit);
  if (!ended) return std::move(ended).error();
  if (!ended->exit.succeeded()) {
    return make_error(Code::Unavailable, arguments.front() + " failed with " + arguments.back(), ended->output);
  }
  const MutexLock lock(mutex_);
  output_cache_.insert_or_assign(std::move(question), CachedOutput{*stamp, ended->output});
  return std::move(ended->output);
}

// Returns the toolkit's version from its header. nvcc itself would have to be started.
std::string CommandToolchain::version_from_directory(const std::string& program) {
  const std::string header = parent_path(real_path(program)) + "/../include/cuda_runtime_api.h";
  const auto stamp = stamp_of(header.c_str());
  if (!stamp) return "of unknown version";
  const MutexLock lock(mutex_);
  CachedOutput& known = output_cache_[{header}];
  if (known.stamp == *stamp) return known.text;
  const int number = defined_number(header, "CUDART_VERSION");
  known = {*stamp, std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10)};
  return known.text;
}

// Returns nvcc's preprocessor: gcc, or NVCC_CCBIN, which names a program or the directory of gcc.
Result<std::string> CommandToolchain::host_compiler() const {
  const std::string path = environment_variable("PATH").value_or("");
  std::string chosen = environment_variable("NVCC_CCBIN").value_or("");
  if (chosen.empty()) chosen = "gcc";
  if (is_directory(chosen)) chosen += "/gcc";
  std::string found = find_program(chosen, path);
  if (found.empty()) {
    return make_error(Code::Unavailable,
                      "the host compiler " + chosen + " of nvcc was not found; install it or set NVCC_CCBIN");
  }
  return found;
}

Result<std::vector<std::string>> CommandToolchain::component_files() {
  const auto program = path();
  if (!program) return program.error();
  std::vector<std::string> files{*program};
  if (!is_nvcc()) return files;
  // nvcc finds them in the same way: next to the real path of the program.
  const std::string directory = parent_path(real_path(*program));
  for (const char* name : {"nvcc.profile", "cudafe++", "fatbinary", "nvlink", "ptxas", "../nvvm/bin/cicc"}) {
    if (exists(directory + "/" + name)) files.push_back(directory + "/" + name);
  }
  std::vector<std::string> bitcode = list_directory(AT_FDCWD, (directory + "/../nvvm/libdevice").c_str());
  std::sort(bitcode.begin(), bitcode.end());
  for (const std::string& name : bitcode) files.push_back(directory + "/../nvvm/libdevice/" + name);
  if (!exists(directory + "/ptxas") || !exists(directory + "/../nvvm/bin/cicc")) {
    return make_error(Code::Unavailable,
                      *program +
                          " is not a complete nvcc: ptxas or cicc is missing; give the absolute path of the "
                          "toolkit's nvcc as the program");
  }
  const auto host = host_compiler();
  if (!host) return host.error();
  files.push_back(*host);
  auto inner = run_cached({*host, "-print-prog-name=cc1plus"});
  if (!inner) return std::move(inner).error();
  while (!inner->empty() && inner->back() == '\n') inner->pop_back();
  // clang, and a gcc without C++ support, print the bare name.
  if (inner->starts_with('/')) files.push_back(*inner);
  return files;
}

Result<CompilerIdentity> CommandToolchain::identity(const RequestContext& context) {
  const auto files = component_files();
  if (!files) return files.error();
  Sha256 hash;
  for (const std::string& file : *files) {
    const auto seen = digests_.lookup(file, context.requested_at);
    if (!seen) return make_error(Code::Unavailable, file + " cannot be read");
    hash.add(as_bytes(file_name(file))).add(seen->digest.bytes);
  }
  CompilerIdentity identity;
  identity.name = file_name(program_);
  identity.path = files->front();
  identity.digest = hash.finish();
  identity.version = is_nvcc() ? version_from_directory(files->front()) : "of unknown version";
  identity.environment = environment_variables(kVariables);
  return identity;
}

Result<std::vector<std::string>> CommandToolchain::include_search_paths() {
  if (!is_nvcc()) return std::vector<std::string>();
  const auto program = path();
  if (!program) return program.error();
  const auto host = host_compiler();
  if (!host) return host.error();
  const auto steps = run_cached({*program, "--dryrun", "-cubin", "kiln.cu"});
  if (!steps) return steps.error();
  std::vector<std::string> question{*host, "-E", "-v", "-x", "c++"};
  for (std::string& argument : includes_of_dryrun(*steps)) question.push_back(std::move(argument));
  question.emplace_back("/dev/null");
  const auto printed = run_cached(question);
  if (!printed) return printed.error();
  std::vector<std::string> directories = directories_of_search_list(*printed);
  if (directories.empty())
    return make_error(Code::Unavailable, *host + " does not print its header search path", *printed);
  // gcc writes the real paths of system headers into dependency files if they are shorter.
  for (std::size_t i = 0, count = directories.size(); i < count; ++i) {
    std::string real = real_path(directories[i]);
    if (std::find(directories.begin(), directories.end(), real) == directories.end())
      directories.push_back(std::move(real));
  }
  return directories;
}

Result<std::vector<std::string>> CommandToolchain::architectures() {
  if (!is_nvcc()) return std::vector<std::string>();
  const auto program = path();
  if (!program) return program.error();
  const auto printed = run_cached({*program, "--list-gpu-code"});
  if (!printed) return printed.error();
  std::vector<std::string> names;
  for (const std::string_view line : split(*printed, '\n')) {
    if (line.starts_with("sm_")) names.emplace_back(line);
  }
  return names;
}

}  // namespace kiln
