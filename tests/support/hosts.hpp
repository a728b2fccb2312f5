#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/files.hpp"
#include "base/process.hpp"
#include "support/files.hpp"
#include "support/patience.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {

/// Hosts of a network of their own, on this machine: a network namespace each, joined by a bridge, and one more for the
/// servers, where the bridge is. Nothing of it has a name outside, and the namespaces live as long as this object's
/// descriptors and the processes in them: after a crash the kernel takes all of it away.
class Hosts {
 public:
  static constexpr const char* kServer = "10.77.0.1";

  /// Empty, or why this machine has no such thing (needs root, iproute2 and a kernel with namespaces and bridges).
  static std::string unavailable() {
    try {
      const Hosts one(1);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return {};
  }

  explicit Hosts(unsigned count) : home_(here()) {
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
    ip(bridge);
    for (unsigned i = 0; i < count; ++i) {
      const auto in_host = enter(i);
      ip("link set lo up\nlink set eth0 up\naddr add " + address(i) + "/16 dev eth0\n");
    }
  }
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  unsigned count() const { return static_cast<unsigned>(hosts_.size()); }
  std::string address(unsigned host) const {
    return "10.77." + std::to_string(1 + host / 250) + "." + std::to_string(1 + host % 250);
  }

  /// While it lives the calling thread is on that host, and so is every process that it starts.
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
  // Commands for `ip`, on the host that the calling thread is on.
  static void ip(const std::string& commands) {
    const TemporaryDirectory folder;
    spit(folder.path("batch"), commands);
    const Fd log(open(folder.path("log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    Process::Start start;
    start.arguments = {"/usr/sbin/ip", "-batch", folder.path("batch")};
    if (access(start.arguments[0].c_str(), X_OK) != 0) start.arguments[0] = "/sbin/ip";
    start.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
    start.descriptors = {{log.get(), 1}, {log.get(), 2}};
    auto process = Process::spawn(start);
    if (!process) throw std::runtime_error("no ip program (iproute2): " + process.error().message);
    const auto exit = process->wait(kPatience);
    if (!exit || !exit->clean()) throw std::runtime_error("ip: " + slurp(folder.path("log")));
  }

  Fd home_;
  Fd servers_;
  std::vector<Fd> hosts_;
};

}  // namespace kiln::test
