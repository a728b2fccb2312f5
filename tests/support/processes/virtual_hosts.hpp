// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/files/files.hpp"
#include "base/process/process.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/hang_timeout.hpp"

namespace kiln::test {

/// Virtual hosts on this machine: a network namespace each, connected by a bridge, and one more for the servers, which
/// has the bridge. Nothing has a name outside, and the namespaces exist as long as this object's descriptors and the
/// processes in them: after a crash the kernel removes everything.
class VirtualHosts {
 public:
  static constexpr const char* kServer = "10.77.0.1";

  /// Returns the reason why this machine does not support it, or an empty string. Needs root, iproute2 and a kernel
  /// with namespaces and bridges.
  static std::string unavailable() {
    try {
      const VirtualHosts one(1);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return {};
  }

  explicit VirtualHosts(unsigned count) : home_(here()) {
    servers_ = make();
    for (unsigned i = 0; i < count; ++i) hosts_.push_back(make());
    const auto in_servers = enter_servers();
    std::string bridge = "link set lo up\nlink add fleet type bridge\nlink set fleet up\naddr add " +
                         std::string(kServer) + "/16 dev fleet\n";
    for (unsigned i = 0; i < count; ++i) {
      const std::string port = "port" + std::to_string(i);
      bridge += "link add " + port + " type veth peer name eth0 netns /proc/" + std::to_string(getpid()) + "/fd/" +
                std::to_string(hosts_[i].get()) + "\nlink set " + port + " master fleet up\n";
    }
    run("ip", bridge);
    for (unsigned i = 0; i < count; ++i) {
      const auto in_host = enter(i);
      run("ip", "link set lo up\nlink set eth0 up\naddr add " + address(i) + "/16 dev eth0\n");
    }
  }
  VirtualHosts(const VirtualHosts&) = delete;
  VirtualHosts& operator=(const VirtualHosts&) = delete;

  unsigned count() const { return static_cast<unsigned>(hosts_.size()); }
  std::string address(unsigned host) const {
    return "10.77." + std::to_string(1 + host / 250) + "." + std::to_string(1 + host % 250);
  }

  /// During its lifetime the calling thread, and every process that it starts, is on that host.
  class Inside {
   public:
    Inside(int there, int back) : back_(back) {
      if (setns(there, CLONE_NEWNET) != 0) throw std::runtime_error(std::string("setns: ") + std::strerror(errno));
    }
    ~Inside() {
      if (setns(back_, CLONE_NEWNET) != 0) abort();  // the rest of the test would run on the wrong host
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    int back_;
  };
  std::unique_ptr<Inside> enter(unsigned host) const {
    return std::make_unique<Inside>(hosts_.at(host).get(), home_.get());
  }
  std::unique_ptr<Inside> enter_servers() const { return std::make_unique<Inside>(servers_.get(), home_.get()); }

  /// Limits the rate at which the servers together send to hosts, until this object ends. Throws if the kernel has no
  /// token bucket filter.
  void limit_servers(std::uint64_t bytes_per_second) const {
    const auto inside = enter_servers();
    run("tc", "qdisc replace dev fleet root tbf rate " + std::to_string(8 * bytes_per_second) +
                  "bit burst 16kb latency 2s\n");
  }
  /// Returns how many bytes the servers have sent to hosts.
  std::uint64_t sent_by_servers() const {
    const auto inside = enter_servers();
    const std::string devices = read_text("/proc/thread-self/net/dev");
    const std::size_t at = devices.find("fleet:");
    if (at == std::string::npos) throw std::runtime_error("the servers have no network");
    std::istringstream numbers(devices.substr(at + 6));
    std::uint64_t number = 0;
    for (int column = 0; column < 9; ++column) numbers >> number;
    return number;
  }

 private:
  static Fd here() {
    Fd fd(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!fd) throw std::runtime_error("this kernel has no network namespaces");
    return fd;
  }
  Fd make() const {
    if (unshare(CLONE_NEWNET) != 0) {
      throw std::runtime_error(std::string("no network namespaces for this user: ") + std::strerror(errno));
    }
    Fd made = here();
    if (setns(home_.get(), CLONE_NEWNET) != 0) abort();
    return made;
  }
  // Runs commands of `ip` or `tc` on the host of the calling thread.
  static void run(const std::string& tool, const std::string& commands) {
    const TemporaryDirectory directory;
    write_text(directory.path("batch"), commands);
    const Fd log(open(directory.path("log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    Process::SpawnOptions start;
    start.arguments = {"/usr/sbin/" + tool, "-batch", directory.path("batch")};
    if (access(start.arguments[0].c_str(), X_OK) != 0) start.arguments[0] = "/sbin/" + tool;
    start.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
    start.descriptors = {{log.get(), 1}, {log.get(), 2}};
    auto process = Process::spawn(start);
    if (!process) throw std::runtime_error("cannot run " + tool + " (iproute2): " + process.error().message);
    const auto exit = process->wait(kHangTimeout);
    if (!exit || !exit->succeeded()) throw std::runtime_error(tool + ": " + read_text(directory.path("log")));
  }

  Fd home_;
  Fd servers_;
  std::vector<Fd> hosts_;
};

}  // namespace kiln::test
