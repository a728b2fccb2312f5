// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/fixtures/files.hpp"
#include "support/processes/hang_timeout.hpp"

namespace kiln::test {

/// A process of get_main with its own environment. The destructor kills it if it still runs.
class GetProcess {
 public:
  struct Start {
    std::vector<std::string> arguments;
    std::map<std::string, std::string> environment;  ///< all variables but PATH, CUDA_HOME and LD_LIBRARY_PATH
    std::vector<std::string> before;                 ///< a command prefix: {"strace", "-f"}
    std::function<bool()> prepare;                   ///< called in the child before exec
  };

  GetProcess(const Start& start, std::string output) : output_(std::move(output)) {
    std::vector<std::string> command = start.before;
    command.emplace_back(KILN_GET_MAIN);
    command.insert(command.end(), start.arguments.begin(), start.arguments.end());
    pid_ = fork();
    if (pid_ != 0) return;
    const int file = open(output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
    dup2(file, 1);
    dup2(file, 2);
    std::vector<std::string> kept;
    for (const char* name : {"PATH", "CUDA_HOME", "LD_LIBRARY_PATH"}) {
      if (const char* value = getenv(name)) kept.push_back(std::string(name) + "=" + value);
    }
    for (const auto& [name, value] : start.environment) kept.push_back(name + "=" + value);
    std::vector<char*> arguments;
    std::vector<char*> variables;
    for (std::string& text : command) arguments.push_back(text.data());
    for (std::string& text : kept) variables.push_back(text.data());
    arguments.push_back(nullptr);
    variables.push_back(nullptr);
    if (start.prepare && !start.prepare()) _exit(97);
    execvpe(arguments[0], arguments.data(), variables.data());
    _exit(98);
  }
  GetProcess(GetProcess&& other) noexcept
      : output_(std::move(other.output_)), pid_(std::exchange(other.pid_, -1)), code_(other.code_) {}
  GetProcess& operator=(GetProcess&&) = delete;
  ~GetProcess() { kill_now(); }

  pid_t id() const { return pid_; }
  void kill_now() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    (void)exit_code();
  }
  /// Returns its exit code, or 124 if it was killed after the limit, which is a test failure: it hangs.
  int exit_code(std::chrono::milliseconds timeout = kHangTimeout) {
    const auto until = std::chrono::steady_clock::now() + timeout;
    for (int status = 0; pid_ >= 0; usleep(2000)) {
      if (waitpid(pid_, &status, WNOHANG) == pid_) {
        code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        pid_ = -1;
      } else if (std::chrono::steady_clock::now() > until) {
        ::kill(pid_, SIGKILL);
        waitpid(pid_, &status, 0);
        code_ = 124;
        pid_ = -1;
      }
    }
    return code_;
  }

  std::string output() const { return read_text(output_); }
  /// Returns the number of lines that start with this text.
  int count(const std::string& beginning) const {
    std::istringstream lines(output());
    int found = 0;
    for (std::string line; std::getline(lines, line);) found += line.starts_with(beginning) ? 1 : 0;
    return found;
  }
  /// Returns the word after a word of the `artifact` line: `artifact`, `ms` or `at`.
  std::string word_after(const std::string& name) const {
    std::istringstream words(output().substr(std::min(output().find("\nartifact ") + 1, output().size())));
    for (std::string word; words >> word;) {
      if (word == name && words >> word) return word;
    }
    return {};
  }

 private:
  std::string output_;
  pid_t pid_ = -1;
  int code_ = -1;
};

}  // namespace kiln::test
