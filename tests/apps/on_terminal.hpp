// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files/files.hpp"
#include "base/process/process.hpp"
#include "support/processes/eventually.hpp"

namespace kiln::test {

/// A program that runs on its own pseudo-terminal. Not thread-safe.
class OnTerminal {
 public:
  OnTerminal(const std::vector<std::string>& command, const std::map<std::string, std::string>& variables,
             unsigned short columns) {
    winsize size{24, columns, 0, 0};
    int master = -1;
    int slave = -1;
    EXPECT_EQ(openpty(&master, &slave, nullptr, nullptr, &size), 0);
    master_ = Fd(master);
    const Fd terminal(slave);
    Process::SpawnOptions start;
    start.arguments = command;
    for (const auto& [name, value] : variables) start.environment.push_back(name + "=" + value);
    start.descriptors = {{slave, 0}, {slave, 1}, {slave, 2}};
    auto spawned = Process::spawn(start);
    EXPECT_TRUE(spawned.has_value());
    if (spawned) process_.emplace(std::move(*spawned));
  }

  /// Waits up to ten seconds for the text. Returns false on timeout.
  bool says(const std::string& text) {
    return eventually([&] {
      read_some();
      return seen_.find(text) != std::string::npos;
    });
  }
  void interrupt() { ::kill(process_->id(), SIGINT); }
  int exit_code() {
    std::optional<Process::Exit> exit;
    (void)eventually([&] {
      read_some();
      exit = process_->wait(std::chrono::milliseconds(1));
      return exit.has_value();
    });
    read_some();
    return exit ? exit->signal != 0 ? 128 + exit->signal : exit->code : -1;
  }
  const std::string& seen() const { return seen_; }

 private:
  void read_some() {
    pollfd ready{master_.get(), POLLIN, 0};
    while (poll(&ready, 1, 10) > 0 && (ready.revents & POLLIN) != 0) {
      char part[4096];
      const ssize_t size = read(master_.get(), part, sizeof part);
      if (size <= 0) return;
      seen_.append(part, static_cast<std::size_t>(size));
    }
  }
  Fd master_;
  std::optional<Process> process_;
  std::string seen_;
};

}  // namespace kiln::test
