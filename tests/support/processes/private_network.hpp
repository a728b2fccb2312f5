// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/process/process.hpp"
#include "support/processes/hang_timeout.hpp"

namespace kiln::test {

/// A private network with only a loopback, in which packets can be dropped. The calling thread and all threads and
/// processes that it starts are in it from its creation, permanently: a test program that uses it does nothing else.
class PrivateNetwork {
 public:
  /// Code::Unsupported gives the reason why it is impossible.
  static Result<PrivateNetwork> enter() {
    if (access("/usr/sbin/iptables", X_OK) != 0) return make_error(Code::Unsupported, "iptables is not installed");
    if (unshare(CLONE_NEWNET) != 0) {
      return make_error(Code::Unsupported, "network namespaces are not permitted here: " + errno_message(errno));
    }
    const Fd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq loopback{{{"lo"}}, {}};
    loopback.ifr_flags = IFF_UP | IFF_RUNNING;
    if (ioctl(any.get(), SIOCSIFFLAGS, &loopback) != 0) {
      return make_error(Code::Unsupported,
                        "the loopback of a network namespace cannot be used: " + errno_message(errno));
    }
    PrivateNetwork network;
    if (!network.filter("-A", 1) || !network.filter("-D", 1)) {
      return make_error(Code::Unsupported, "iptables cannot filter in a network namespace here");
    }
    return network;
  }

  /// `drop` silently drops every packet to and from this port; `pass` ends that.
  bool drop(std::uint16_t port) { return filter("-A", port); }
  bool pass(std::uint16_t port) { return filter("-D", port); }

 private:
  PrivateNetwork() = default;

  static bool filter(const char* change, std::uint16_t port) {
    return iptables(change, "--dport", port) && iptables(change, "--sport", port);
  }
  static bool iptables(const char* change, const char* end, std::uint16_t port) {
    const Fd nowhere(open("/dev/null", O_RDWR | O_CLOEXEC));
    Process::SpawnOptions start;
    start.arguments = {"/usr/sbin/iptables", "-w", change, "INPUT", "-p", "tcp", end,
                       std::to_string(port), "-j", "DROP"};
    start.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
    start.descriptors = {{nowhere.get(), 0}, {nowhere.get(), 1}, {nowhere.get(), 2}};
    Result<Process> process = Process::spawn(start);
    if (!process) return false;
    const std::optional<Process::Exit> exit = process->wait(kHangTimeout);
    return exit && exit->succeeded();
  }
};

}  // namespace kiln::test
