// SPDX-License-Identifier: Apache-2.0
#include "bench/support/child_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "bench/support/harness.hpp"

namespace kiln::bench {

std::string beside_this_program(const char* name) {
  char self[4096];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof self);
  const std::string path(self, size > 0 ? static_cast<std::size_t>(size) : 0);
  return path.substr(0, path.rfind('/') + 1) + name;
}

Result<Times> run_child(const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return io_error("cannot create", "a pipe", errno);
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), STDOUT_FILENO);
  pid_t child = 0;
  const std::int64_t start = now_ns();
  const int error = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  int status = 1;
  if (error == 0) waitpid(child, &status, 0);
  const std::int64_t end = now_ns();
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return io_error("cannot start", arguments.front(), error);
  writer = Fd();
  char text[256] = {};
  if (status != 0 || read(reader.get(), text, sizeof text - 1) <= 0) {
    return make_error(Code::Internal, arguments.front() + " ended with status " + std::to_string(status));
  }
  char* more = nullptr;
  const double own = static_cast<double>(std::strtoll(text, &more, 10));
  return Times{own / 1000.0, static_cast<double>(end - start) / 1e6, more};
}

Plan::Side child_side(const std::vector<std::string>& arguments, double Times::*which) {
  return [arguments, which]() -> Result<double> {
    auto times = run_child(arguments);
    if (!times) return std::move(times).error();
    return (*times).*which;
  };
}

}  // namespace kiln::bench
