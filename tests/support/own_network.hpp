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
#include "base/files.hpp"
#include "base/process.hpp"
#include "support/patience.hpp"

namespace kiln::test {

/// A network of one's own, in which packets can be made to go nowhere: a loopback and nothing else. The calling thread
/// is in it from when it is made, and so are all threads and processes that it starts, for good: a test program that
/// has one does nothing else.
class OwnNetwork {
 public:
  /// Code::Unsupported says why there can be none here.
  static Result<OwnNetwork> enter() {
    if (access("/usr/sbin/iptables", X_OK) != 0) return failure(Code::Unsupported, "iptables is not installed");
    if (unshare(CLONE_NEWNET) != 0) {
      return failure(Code::Unsupported, "network namespaces are not permitted here: " + errno_text(errno));
    }
    const Fd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq loopback{{{"lo"}}, {}};
    loopback.ifr_flags = IFF_UP | IFF_RUNNING;
    if (ioctl(any.get(), SIOCSIFFLAGS, &loopback) != 0) {
      return failure(Code::Unsupported, "the loopback of a network namespace cannot be used: " + errno_text(errno));
    }
    OwnNetwork network;
    if (!network.filter("-A", 1) || !network.filter("-D", 1)) {
      return failure(Code::Unsupported, "iptables cannot filter in a network namespace here");
    }
    return network;
  }

  /// From here on every packet to and from this port is dropped without a word; then not any more.
  bool drop(std::uint16_t port) { return filter("-A", port); }
  bool pass(std::uint16_t port) { return filter("-D", port); }

 private:
  OwnNetwork() = default;

  static bool filter(const char* change, std::uint16_t port) {
    return iptables(change, "--dport", port) && iptables(change, "--sport", port);
  }
  static bool iptables(const char* change, const char* end, std::uint16_t port) {
    const Fd nowhere(open("/dev/null", O_RDWR | O_CLOEXEC));
    Process::Start start;
    start.arguments = {"/usr/sbin/iptables", "-w", change, "INPUT", "-p", "tcp", end,
                       std::to_string(port), "-j", "DROP"};
    start.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
    start.descriptors = {{nowhere.get(), 0}, {nowhere.get(), 1}, {nowhere.get(), 2}};
    Result<Process> process = Process::spawn(start);
    if (!process) return false;
    const std::optional<Process::Exit> exit = process->wait(kPatience);
    return exit && exit->clean();
  }
};

}  // namespace kiln::test
