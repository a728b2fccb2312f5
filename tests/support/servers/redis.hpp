// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/files/files.hpp"
#include "base/process/process.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/hang_timeout.hpp"
#include "support/servers/loopback.hpp"

namespace kiln::test {

/// A real redis-server (Debian's) on a free port of the loopback without persistence. It ends with this object and if
/// the test dies.
class RedisServer {
 public:
  struct Options {
    std::string password;  ///< password of the default user
    /// An additional user in Redis ACL syntax: {"kiln on >secret ~kiln:1:* +set"}. The default user is then disabled
    /// unless it has a password.
    std::string user;
    std::string address = "127.0.0.1";  ///< "0.0.0.0" for other network namespaces
    std::vector<std::string> lines;     ///< further lines of its configuration: {"maxclients 20000"}
  };

  /// Returns whether tools/setup.sh has installed it.
  static bool available() { return access(kServer, X_OK) == 0 && access(kClient, X_OK) == 0; }

  RedisServer() : RedisServer(Options()) {}
  explicit RedisServer(Options options) : options_(std::move(options)) {
    // Another process may take the port between the query and the start.
    for (int attempt = 0; attempt < 5; ++attempt) {
      port_ = listen_on().port;
      if (start()) return;
    }
    throw std::runtime_error("redis-server did not start: " + read_text(directory_.path("log")));
  }
  ~RedisServer() { stop(); }
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  /// Returns `redis://127.0.0.1:…` or `redis://user@127.0.0.1:…`.
  std::string url(const std::string& user = {}) const {
    return "redis://" + (user.empty() ? "" : user + "@") + "127.0.0.1:" + std::to_string(port_);
  }
  std::uint16_t port() const { return port_; }

  /// Restarts it empty on the same port. Returns whether it runs.
  bool start() {
    stop();
    write_configuration();
    std::filesystem::remove(directory_.path("log"));
    pid_ = fork();
    if (pid_ == 0) become_server();
    return eventually([this] { return ready() || ended(); }) && pid_ > 0;
  }
  /// Kills it like a crash: connections are reset, and the port refuses new ones.
  void stop() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  /// Pauses it: the kernel keeps its connections and accepts new ones, but there are no responses.
  void pause() const { ::kill(pid_, SIGSTOP); }
  void resume() const { ::kill(pid_, SIGCONT); }

  /// Returns the output of redis-cli without the final newline.
  std::string ask(const std::vector<std::string>& command) const {
    const TemporaryDirectory directory;
    const Fd out(open(directory.path("out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    Process::SpawnOptions start;
    start.arguments = {kClient, "-h", "127.0.0.1", "-p", std::to_string(port_)};
    start.arguments.insert(start.arguments.end(), command.begin(), command.end());
    start.environment = {"PATH=/usr/bin:/bin"};
    if (!options_.password.empty()) start.environment.push_back("REDISCLI_AUTH=" + options_.password);
    start.descriptors = {{out.get(), 1}, {out.get(), 2}};
    Result<Process> process = Process::spawn(start);
    if (!process || !process->wait(kHangTimeout)) return "redis-cli did not end";
    std::string said = read_text(directory.path("out"));
    while (said.ends_with('\n')) said.pop_back();
    return said;
  }
  /// Returns the number of calls of a command since the start: `calls("set")`.
  std::uint64_t calls(const std::string& command) const {
    const std::string said = ask({"info", "commandstats"});
    const std::string before = "cmdstat_" + command + ":calls=";
    const std::size_t at = said.find(before);
    return at == std::string::npos ? 0 : std::stoull(said.substr(at + before.size()));
  }

 private:
  static constexpr const char* kServer = "/usr/bin/redis-server";
  static constexpr const char* kClient = "/usr/bin/redis-cli";

  void write_configuration() const {
    std::string text = "port " + std::to_string(port_) + "\nbind " + options_.address +
                       "\nprotected-mode no\nsave \"\"\nappendonly no\ndaemonize no\nlogfile " +
                       directory_.path("log") + "\ndir " + directory_.path() + "\n";
    if (!options_.user.empty()) text += "user " + options_.user + "\n";
    if (!options_.password.empty()) {
      text += "requirepass " + options_.password + "\n";
    } else if (!options_.user.empty()) {
      text += "user default off\n";
    }
    for (const std::string& line : options_.lines) text += line + "\n";
    write_text(directory_.path("redis.conf"), text);
  }

  [[noreturn]] void become_server() const {
    // Without this, a killed test would leave servers running.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int null = open("/dev/null", O_RDWR);
    for (const int descriptor : {0, 1, 2}) dup2(null, descriptor);
    for (int descriptor = 3; descriptor < 256; ++descriptor) close(descriptor);
    execl(kServer, kServer, directory_.path("redis.conf").c_str(), nullptr);
    _exit(98);
  }

  bool ready() const {
    return read_text(directory_.path("log")).find("Ready to accept connections") != std::string::npos;
  }
  bool ended() {
    if (waitpid(pid_, nullptr, WNOHANG) != pid_) return false;
    pid_ = -1;
    return true;
  }

  const Options options_;
  TemporaryDirectory directory_;
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace kiln::test
