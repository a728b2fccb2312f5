// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/environment.hpp"

#include <fcntl.h>
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "backends/command/command_toolchain.hpp"
#include "base/files/files.hpp"
#include "base/process/environment.hpp"
#include "base/text.hpp"

namespace kiln::jit {
namespace {

constexpr std::string_view kDistInfo = ".dist-info";
constexpr std::size_t kMaxShebang = 512;

// `Cuda_Core` and `cuda.core` are the same distribution as `cuda-core`.
std::string normalized(std::string_view name) {
  std::string result;
  for (const char each : name) {
    const bool is_separator = each == '-' || each == '_' || each == '.';
    if (is_separator && result.ends_with('-')) continue;
    result += is_separator ? '-' : static_cast<char>(each >= 'A' && each <= 'Z' ? each - 'A' + 'a' : each);
  }
  return result;
}

// Adds the distributions of a directory such as site-packages. The first one of a name counts.
void add_distributions(const std::string& directory, std::map<std::string, std::string>& versions) {
  for (const std::string& name : list_directory(AT_FDCWD, directory.c_str())) {
    if (!name.ends_with(kDistInfo)) continue;
    const std::string both = name.substr(0, name.size() - kDistInfo.size());
    const std::size_t dash = both.rfind('-');
    if (dash == std::string::npos || dash == 0) continue;
    versions.emplace(normalized(both.substr(0, dash)), both.substr(dash + 1));
  }
}

/// The members of a pyvenv.cfg that matter here.
struct VenvConfig {
  std::string home;     // directory of the interpreter from which it was made
  std::string version;  // such as 3.12.4; may be empty
  bool sees_system = false;
};

VenvConfig parse_venv(std::string_view text) {
  VenvConfig config;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const auto trimmed = [](std::string_view part) {
      while (part.starts_with(' ')) part.remove_prefix(1);
      while (part.ends_with(' ') || part.ends_with('\r')) part.remove_suffix(1);
      return part;
    };
    const std::string_view name = trimmed(line.substr(0, equals));
    const std::string_view value = trimmed(line.substr(equals + 1));
    if (name == "home") config.home = value;
    if (name == "version" || name == "version_info") config.version = value;
    if (name == "include-system-site-packages") config.sees_system = value == "true";
  }
  return config;
}

// Returns `python3.12` for a version such as 3.12.4, `python3.13t` for 3.13t; empty without a minor version.
std::string library_of(std::string_view version) {
  if (!version.starts_with("3.")) return {};
  std::size_t end = version.find_first_not_of("0123456789", 2);
  if (end == 2 || version.size() == 2) return {};
  if (end < version.size() && version[end] == 't') ++end;
  return "python" + std::string(version.substr(0, end));
}

// Returns the name of the library directory of an interpreter: by the name of its file, the version of the virtual
// environment, or because there is no other one. Empty if none of these decides.
std::string library_name(const std::string& prefix, const std::string& interpreter, const VenvConfig& config) {
  const std::string libraries = prefix + "/lib/";
  std::error_code error;
  const std::string program = std::filesystem::canonical(interpreter, error).filename().string();
  const std::string of_program = program.starts_with("python") ? library_of(program.substr(6)) : std::string();
  for (const std::string& name : {of_program, library_of(config.version)}) {
    if (!name.empty() && is_directory(libraries + name)) return name;
  }
  std::vector<std::string> names = list_directory(AT_FDCWD, libraries.c_str());
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("python3."); });
  return names.size() == 1 ? names.front() : std::string();
}

// Adds the packages that an interpreter outside of virtual environments sees, in its order (module site).
void add_system_packages(const std::string& prefix, const std::string& library,
                         std::map<std::string, std::string>& versions) {
  const std::string home = environment_variable("HOME").value_or("");
  if (!home.empty() && environment_variable("PYTHONNOUSERSITE").value_or("").empty())
    add_distributions(home + "/.local/lib/" + library + "/site-packages", versions);
  // Where pip of Debian's Python installs.
  if (prefix == "/usr") add_distributions("/usr/local/lib/" + library + "/dist-packages", versions);
  for (const std::string& packages :
       {library + "/site-packages", library + "/dist-packages", std::string("python3/dist-packages")})
    add_distributions(prefix + "/lib/" + packages, versions);
}

// Returns the prefix of an interpreter. That of a virtual environment is next to it, otherwise links are followed.
std::string prefix_of(const std::string& interpreter) {
  const std::string near = parent_path(parent_path(interpreter));
  if (exists(near + "/pyvenv.cfg")) return near;
  std::error_code error;
  const std::string real = std::filesystem::canonical(interpreter, error).string();
  return error ? near : parent_path(parent_path(real));
}

std::string program_path(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    std::error_code error;  // the working directory was removed
    const std::filesystem::path whole = std::filesystem::absolute(name, error);
    return error ? name : whole.lexically_normal().string();
  }
  return find_program(name, environment_variable("PATH").value_or(""));
}

bool is_python(const std::string& path) { return file_name(path).starts_with("python"); }

// Returns the first line of a script after `#!`; empty if the file is no script.
std::string script_line(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  const auto head = file ? read_all(file.get(), kMaxShebang, path) : Result<Bytes>(Bytes());
  if (!head || !head->view().starts_with("#!")) return {};
  return std::string(head->view().substr(2, head->view().find('\n') - 2));
}

// Returns the interpreter of a script, from its first line; empty if it names no Python.
std::string script_interpreter(const std::string& path) {
  const std::string line = script_line(path);
  std::vector<std::string> words;
  for (const std::string_view word : split(line, ' ')) {
    if (!word.empty()) words.emplace_back(word);
  }
  if (words.empty()) return {};
  if (file_name(words[0]) == "env" && words.size() > 1) words[0] = program_path(words[1]);
  return is_python(words[0]) ? words[0] : std::string();
}

std::string interpreter_of(const std::vector<std::string>& command) {
  if (command.empty()) return {};
  const std::string program = program_path(command[0]);
  if (program.empty()) return {};
  return is_python(program) ? program : script_interpreter(program);
}

// Returns the environment of an interpreter. A script in its place, such as a shim of pyenv, starts one that is not
// known here.
PythonEnvironment of_interpreter(const std::string& interpreter) {
  auto made = PythonEnvironment::of_prefix(interpreter.empty() ? interpreter : prefix_of(interpreter), interpreter);
  if (made.python.empty() && !script_line(interpreter).empty())
    made.problem = "the packages of Python are not known: " + interpreter +
                   " is a script that starts another program (a shim of pyenv?); give the path of the interpreter, "
                   "which 'pyenv which python3' prints, or activate a virtual environment";
  return made;
}

}  // namespace

PythonEnvironment PythonEnvironment::of_prefix(const std::string& prefix, const std::string& interpreter) {
  PythonEnvironment made;
  made.prefix = prefix;
  const std::string search_path = environment_variable("PYTHONPATH").value_or("");
  for (const std::string_view path : split(search_path, ':')) {
    if (!path.empty()) add_distributions(std::string(path), made.versions);
  }
  if (prefix.empty()) return made;
  const auto text = read_file(prefix + "/pyvenv.cfg");
  const bool is_venv = text && *text;
  const VenvConfig config = is_venv ? parse_venv((*text)->view()) : VenvConfig();
  made.python = library_name(prefix, interpreter, config);
  if (made.python.empty()) return made;
  if (is_venv) add_distributions(prefix + "/lib/" + made.python + "/site-packages", made.versions);
  if (!is_venv || config.sees_system)
    add_system_packages(is_venv ? parent_path(config.home) : prefix, made.python, made.versions);
  return made;
}

PythonEnvironment PythonEnvironment::of(const std::vector<std::string>& command) {
  if (const std::string interpreter = interpreter_of(command); !interpreter.empty()) return of_interpreter(interpreter);
  if (const auto active = environment_variable("VIRTUAL_ENV"); active && !active->empty())
    return of_prefix(*active, *active + "/bin/python");
  return of_interpreter(program_path("python3"));
}

std::vector<DetectedSystem> detect_systems(const std::vector<Rule>& rules, const PythonEnvironment& python) {
  std::vector<DetectedSystem> found;
  std::set<std::string> seen;
  for (const Rule& first : rules) {
    const std::string& distribution = first.distributions.front();
    const auto installed = python.versions.find(normalized(distribution));
    if (installed == python.versions.end() || !seen.insert(first.system).second) continue;
    DetectedSystem system{nullptr, first.system, installed->second, {}};
    const auto release = parse_release(installed->second);
    for (const Rule& rule : rules) {
      if (rule.system != first.system || rule.distributions.front() != distribution) continue;
      if (!release || !rule.versions.contains(*release)) continue;
      system.rule = &rule;
      break;
    }
    if (system.rule != nullptr) system.environment = environment_text(*system.rule, python);
    found.push_back(std::move(system));
  }
  return found;
}

std::string environment_text(const Rule& rule, const PythonEnvironment& python) {
  std::string text = "system " + rule.system + "\n";
  for (const std::string& name : rule.distributions) {
    const auto version = python.versions.find(normalized(name));
    text +=
        "distribution " + normalized(name) + " " + (version != python.versions.end() ? version->second : "-") + "\n";
  }
  utsname machine{};
  uname(&machine);
  text += std::string("machine ") + machine.machine + "\n";
  if (rule.host_code) text += std::string("libc ") + gnu_get_libc_version() + "\npython " + python.python + "\n";
  return text;
}

}  // namespace kiln::jit
