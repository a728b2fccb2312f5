#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/files.hpp"
#include "base/process.hpp"
#include "support/files.hpp"
#include "support/patience.hpp"

namespace kiln::test {

using Variables = std::map<std::string, std::string>;

/// What a program needs of this process's environment to find the CUDA toolkit, and the given variables.
inline std::vector<std::string> environment_with(const Variables& variables) {
  std::vector<std::string> environment;
  for (const char* name : {"PATH", "CUDA_HOME", "LD_LIBRARY_PATH"}) {
    if (const char* value = getenv(name)) environment.push_back(std::string(name) + "=" + value);
  }
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

/// A program in an environment of its own, started on the host that the calling thread is on, whose output is kept.
/// Its standard input is open until `let_go`. One that still runs when this goes is killed.
class FleetProcess {
 public:
  FleetProcess(std::vector<std::string> command, const Variables& variables, std::string output, std::string folder)
      : output_(std::move(output)) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    const Fd in(ends[0]);
    input_ = Fd(ends[1]);
    const Fd out(open(output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
    Process::Start start;
    start.arguments = std::move(command);
    start.environment = environment_with(variables);
    start.descriptors = {{in.get(), 0}, {out.get(), 1}, {out.get(), 2}};
    start.folder = std::move(folder);
    auto spawned = Process::spawn(start);
    if (!spawned) throw std::runtime_error(spawned.error().message);
    process_.emplace(std::move(*spawned));
  }

  pid_t id() const { return process_->id(); }
  void let_go() { input_ = Fd(); }
  void kill_now() { process_->kill(); }
  /// Its exit code; 124 when it still ran after the limit, which no test expects: nothing may hang.
  int exit_code(std::chrono::milliseconds limit = kPatience) {
    const auto exit = process_->wait(limit);
    if (!exit) return 124;
    return exit->signal != 0 ? 128 + exit->signal : exit->code;
  }

  std::string output() const { return slurp(output_); }
  /// The line that begins with this word, without it; empty where it was not said yet.
  std::string line(const std::string& word) const {
    std::istringstream lines(output());
    for (std::string text; std::getline(lines, text);) {
      if (text.starts_with(word + " ")) return text.substr(word.size() + 1);
    }
    return {};
  }
  /// A value of `name=value` on the line that begins with this word; empty where it is not there.
  std::string value(const std::string& word, const std::string& name) const {
    std::istringstream words(line(word));
    for (std::string text; words >> text;) {
      if (text.starts_with(name + "=")) return text.substr(name.size() + 1);
    }
    return {};
  }
  double number(const std::string& word, const std::string& name) const { return std::atof(value(word, name).c_str()); }

 private:
  std::string output_;
  Fd input_;
  std::optional<Process> process_;
};

}  // namespace kiln::test
