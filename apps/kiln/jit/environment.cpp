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

void add_python_prefix(const std::string& prefix, PythonEnvironment& to) {
  std::vector<std::string> names = list_directory(AT_FDCWD, (prefix + "/lib").c_str());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (!name.starts_with("python3")) continue;
    if (to.python.empty() && name != "python3") to.python = name;
    for (const char* packages : {"/site-packages", "/dist-packages"})
      add_distributions(prefix + "/lib/" + name + packages, to.versions);
  }
}

// Returns the directory of the interpreter that the file pyvenv.cfg names, if its packages are visible, too.
std::string system_prefix(const std::string& config) {
  std::string home;
  bool included = false;
  for (const std::string_view line : split(config, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const auto trimmed = [](std::string_view text) {
      while (text.starts_with(' ')) text.remove_prefix(1);
      while (text.ends_with(' ') || text.ends_with('\r')) text.remove_suffix(1);
      return text;
    };
    const std::string_view name = trimmed(line.substr(0, equals));
    const std::string_view value = trimmed(line.substr(equals + 1));
    if (name == "home") home = value;
    if (name == "include-system-site-packages") included = value == "true";
  }
  return included ? parent_path(home) : std::string();
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
  if (name.find('/') != std::string::npos) return std::filesystem::absolute(name).lexically_normal().string();
  return find_program(name, environment_variable("PATH").value_or(""));
}

bool is_python(const std::string& path) { return file_name(path).starts_with("python"); }

// Returns the interpreter of a script, from its first line; empty if it names no Python.
std::string script_interpreter(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  const auto head = file ? read_all(file.get(), kMaxShebang, path) : Result<Bytes>(Bytes());
  if (!head || !head->view().starts_with("#!")) return {};
  const std::string_view text = head->view().substr(2);
  std::vector<std::string> words;
  for (const std::string_view word : split(text.substr(0, text.find('\n')), ' ')) {
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

}  // namespace

PythonEnvironment PythonEnvironment::of_prefix(const std::string& prefix) {
  PythonEnvironment made;
  made.prefix = prefix;
  for (const std::string_view path : split(environment_variable("PYTHONPATH").value_or(""), ':')) {
    if (!path.empty()) add_distributions(std::string(path), made.versions);
  }
  if (prefix.empty()) return made;
  add_python_prefix(prefix, made);
  std::string base;
  const auto config = read_file(prefix + "/pyvenv.cfg");
  if (config && *config) {
    base = system_prefix(std::string((*config)->view()));
  } else {
    base = environment_variable("HOME").value_or("") + "/.local";  // pip install --user
  }
  if (!base.empty()) add_python_prefix(base, made);
  return made;
}

PythonEnvironment PythonEnvironment::of(const std::vector<std::string>& command) {
  if (const std::string interpreter = interpreter_of(command); !interpreter.empty())
    return of_prefix(prefix_of(interpreter));
  if (const auto active = environment_variable("VIRTUAL_ENV"); active && !active->empty()) return of_prefix(*active);
  const std::string python = program_path("python3");
  return of_prefix(python.empty() ? python : prefix_of(python));
}

std::vector<DetectedSystem> detect_systems(const std::vector<Rule>& rules, const PythonEnvironment& python) {
  std::vector<DetectedSystem> found;
  std::set<std::string> seen;
  for (const Rule& first : rules) {
    if (!seen.insert(first.system).second) continue;
    const auto installed = python.versions.find(normalized(first.distributions.front()));
    if (installed == python.versions.end()) continue;
    DetectedSystem system{nullptr, first.system, installed->second, {}};
    const auto release = parse_release(installed->second);
    for (const Rule& rule : rules) {
      if (rule.system != first.system || !release || !rule.versions.contains(*release)) continue;
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
