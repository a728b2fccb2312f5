#include "compile/command_tools.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"

namespace kiln {
namespace {

constexpr std::chrono::milliseconds kAskLimit{30'000};

// Variables that nvcc or its host compiler takes inputs from, sorted by name. The program gets these and no others, so
// that every one that counts is in the key.
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

// The number behind `#define name`, of a header of the toolkit.
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
  const auto usable = [](const std::string& file) { return !is_folder(file) && access(file.c_str(), X_OK) == 0; };
  if (name.find('/') != std::string::npos) return name.front() == '/' && usable(name) ? name : std::string();
  for (const std::string_view folder : split(path, ':')) {
    std::string file = std::string(folder) + "/" + name;
    // A folder that is not absolute would be another one for each working directory.
    if (folder.starts_with('/') && usable(file)) return file;
  }
  return {};
}

std::vector<std::string> folders_of_search_list(const std::string& printed) {
  constexpr std::string_view kNotThere = "ignoring nonexistent directory \"";
  std::vector<std::string> missing;
  std::vector<std::string> folders;
  bool within = false;
  for (const std::string_view line : split(printed, '\n')) {
    if (line.starts_with(kNotThere) && line.ends_with('"')) {
      missing.emplace_back(line.substr(kNotThere.size(), line.size() - kNotThere.size() - 1));
    } else if (line.starts_with("#include ") && line.ends_with("search starts here:")) {
      within = true;
    } else if (line.starts_with("End of search list")) {
      within = false;
    } else if (within && line.starts_with(' ')) {
      folders.emplace_back(line.substr(1));
    }
  }
  folders.insert(folders.begin(), missing.begin(), missing.end());
  return folders;
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

CommandTools::CommandTools(std::string program, FileDigests& digests, CommandRunner& runner)
    : program_(std::move(program)), digests_(digests), runner_(runner) {}

Result<std::string> CommandTools::path() const {
  std::string found = find_program(program_, environment_variable("PATH").value_or(""));
  if (!found.empty()) return found;
  return failure(Code::Unavailable,
                 "the compiler " + program_ + " was not found; put its folder into PATH or give its absolute path");
}

bool CommandTools::is_nvcc() const { return name_in_folder(program_) == "nvcc"; }

std::vector<std::string> CommandTools::environment(const std::vector<std::pair<std::string, std::string>>& inputs) {
  // Messages in one language, whatever the user's is.
  std::vector<std::string> variables{"LC_ALL=C"};
  for (const auto& [name, value] : environment_variables(kPaths)) variables.push_back(name + "=" + value);
  for (const auto& [name, value] : inputs) variables.push_back(name + "=" + value);
  return variables;
}

Result<std::string> CommandTools::ask(const std::vector<std::string>& arguments) {
  const auto stamp = stamp_of(arguments.front().c_str());
  if (!stamp) return failure(Code::Unavailable, arguments.front() + " cannot be read");
  Process::Start start;
  start.arguments = arguments;
  start.environment = environment(environment_variables(kVariables));
  start.folder = "/";
  std::vector<std::string> question = arguments;
  question.insert(question.end(), start.environment.begin(), start.environment.end());
  {
    const MutexLock lock(mutex_);
    const auto known = said_.find(question);
    if (known != said_.end() && known->second.stamp == *stamp) return known->second.text;
  }
  auto ended = runner_.run(std::move(start), kAskLimit);
  if (!ended) return std::move(ended).error();
  if (!ended->exit.clean()) {
    return failure(Code::Unavailable, arguments.front() + " does not answer " + arguments.back(), ended->output);
  }
  const MutexLock lock(mutex_);
  said_.insert_or_assign(std::move(question), Said{*stamp, ended->output});
  return std::move(ended->output);
}

// The toolkit's version, from the header that says it: nvcc itself would have to be started.
std::string CommandTools::version_beside(const std::string& program) {
  const std::string header = folder_of(real_path(program)) + "/../include/cuda_runtime_api.h";
  const auto stamp = stamp_of(header.c_str());
  if (!stamp) return "of unknown version";
  const MutexLock lock(mutex_);
  Said& known = said_[{header}];
  if (known.stamp == *stamp) return known.text;
  const int number = defined_number(header, "CUDART_VERSION");
  known = {*stamp, std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10)};
  return known.text;
}

// nvcc preprocesses with gcc, or with what NVCC_CCBIN names: a program, or the folder that gcc is in.
Result<std::string> CommandTools::host_compiler() const {
  const std::string path = environment_variable("PATH").value_or("");
  std::string chosen = environment_variable("NVCC_CCBIN").value_or("");
  if (chosen.empty()) chosen = "gcc";
  if (is_folder(chosen)) chosen += "/gcc";
  std::string found = find_program(chosen, path);
  if (found.empty()) {
    return failure(Code::Unavailable, "nvcc needs a host compiler, and " + chosen +
                                          " was not found; install it or name another with NVCC_CCBIN");
  }
  return found;
}

Result<std::vector<std::string>> CommandTools::parts() {
  const auto program = path();
  if (!program) return program.error();
  std::vector<std::string> files{*program};
  if (!is_nvcc()) return files;
  // Beside the program that a link on the PATH leads to: so nvcc finds them too.
  const std::string folder = folder_of(real_path(*program));
  for (const char* name : {"nvcc.profile", "cudafe++", "fatbinary", "nvlink", "ptxas", "../nvvm/bin/cicc"}) {
    if (exists(folder + "/" + name)) files.push_back(folder + "/" + name);
  }
  std::vector<std::string> bitcode = list_directory(AT_FDCWD, (folder + "/../nvvm/libdevice").c_str());
  std::sort(bitcode.begin(), bitcode.end());
  for (const std::string& name : bitcode) files.push_back(folder + "/../nvvm/libdevice/" + name);
  if (!exists(folder + "/ptxas") || !exists(folder + "/../nvvm/bin/cicc")) {
    return failure(Code::Unavailable, *program +
                                          " has no ptxas beside it and is no whole nvcc; give the absolute path of the "
                                          "toolkit's own nvcc as the program");
  }
  const auto host = host_compiler();
  if (!host) return host.error();
  files.push_back(*host);
  auto inner = ask({*host, "-print-prog-name=cc1plus"});
  if (!inner) return std::move(inner).error();
  while (!inner->empty() && inner->back() == '\n') inner->pop_back();
  // clang, and a gcc without C++, print the bare name.
  if (inner->starts_with('/')) files.push_back(*inner);
  return files;
}

Result<CompilerIdentity> CommandTools::identity() {
  const auto files = parts();
  if (!files) return files.error();
  Sha256 hash;
  for (const std::string& file : *files) {
    const auto seen = digests_.look(file);
    if (!seen) return failure(Code::Unavailable, file + " cannot be read");
    hash.add(as_bytes(name_in_folder(file))).add(seen->digest.bytes);
  }
  CompilerIdentity identity;
  identity.name = name_in_folder(program_);
  identity.path = files->front();
  identity.digest = hash.finish();
  identity.version = is_nvcc() ? version_beside(files->front()) : "of unknown version";
  identity.environment = environment_variables(kVariables);
  return identity;
}

Result<std::vector<std::string>> CommandTools::search_folders() {
  if (!is_nvcc()) return std::vector<std::string>();
  const auto program = path();
  if (!program) return program.error();
  const auto host = host_compiler();
  if (!host) return host.error();
  const auto steps = ask({*program, "--dryrun", "-cubin", "kiln.cu"});
  if (!steps) return steps.error();
  std::vector<std::string> question{*host, "-E", "-v", "-x", "c++"};
  for (std::string& argument : includes_of_dryrun(*steps)) question.push_back(std::move(argument));
  question.emplace_back("/dev/null");
  const auto printed = ask(question);
  if (!printed) return printed.error();
  std::vector<std::string> folders = folders_of_search_list(*printed);
  if (folders.empty()) return failure(Code::Unavailable, *host + " does not say where it looks for headers", *printed);
  // gcc writes the real paths of system headers into dependency files where these are shorter.
  for (std::size_t i = 0, count = folders.size(); i < count; ++i) {
    std::string real = real_path(folders[i]);
    if (std::find(folders.begin(), folders.end(), real) == folders.end()) folders.push_back(std::move(real));
  }
  return folders;
}

Result<std::vector<std::string>> CommandTools::architectures() {
  if (!is_nvcc()) return std::vector<std::string>();
  const auto program = path();
  if (!program) return program.error();
  const auto printed = ask({*program, "--list-gpu-code"});
  if (!printed) return printed.error();
  std::vector<std::string> names;
  for (const std::string_view line : split(*printed, '\n')) {
    if (line.starts_with("sm_")) names.emplace_back(line);
  }
  return names;
}

}  // namespace kiln
