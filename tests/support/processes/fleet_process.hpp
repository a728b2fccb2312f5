// SPDX-License-Identifier: Apache-2.0
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

#include "base/files/files.hpp"
#include "base/process/process.hpp"
#include "support/fixtures/files.hpp"
#include "support/processes/hang_timeout.hpp"

namespace kiln::test {

using Variables = std::map<std::string, std::string>;

/// Returns the variables of this process that a program needs to find the CUDA toolkit, and the given variables.
inline std::vector<std::string> environment_with(const Variables& variables) {
  std::vector<std::string> environment;
  for (const char* name : {"PATH", "CUDA_HOME", "LD_LIBRARY_PATH"}) {
    if (const char* value = getenv(name)) environment.push_back(std::string(name) + "=" + value);
  }
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

/// A program with its own environment, started on the host of the calling thread. Its output is recorded. Its standard
/// input is open until `let_go`. The destructor kills it if it still runs.
class FleetProcess {
 public:
  FleetProcess(std::vector<std::string> command, const Variables& variables, std::string output, std::string directory)
      : output_(std::move(output)) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("cannot create a pipe");
    const Fd in(ends[0]);
    input_ = Fd(ends[1]);
    const Fd out(open(output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
    Process::SpawnOptions start;
    start.arguments = std::move(command);
    start.environment = environment_with(variables);
    start.descriptors = {{in.get(), 0}, {out.get(), 1}, {out.get(), 2}};
    start.working_directory = std::move(directory);
    auto spawned = Process::spawn(start);
    if (!spawned) throw std::runtime_error(spawned.error().message);
    process_.emplace(std::move(*spawned));
  }

  pid_t id() const { return process_->id(); }
  void let_go() { input_ = Fd(); }
  void kill_now() { process_->kill(); }
  static constexpr int kStillRuns = 124;
  /// Returns its exit code, or `kStillRuns` after the limit, which is a test failure: it hangs.
  int exit_code(std::chrono::milliseconds timeout = kHangTimeout) {
    const auto exit = process_->wait(timeout);
    if (!exit) return kStillRuns;
    return exit->signal != 0 ? 128 + exit->signal : exit->code;
  }

  std::string output() const { return read_text(output_); }
  /// Returns the line that starts with this word, without the word; empty if it was not printed yet.
  std::string line(const std::string& word) const {
    std::istringstream lines(output());
    for (std::string text; std::getline(lines, text);) {
      if (text.starts_with(word + " ")) return text.substr(word.size() + 1);
    }
    return {};
  }
  /// Returns the value of `name=value` on the line that starts with this word; empty if it is missing.
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
