#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "base/clock.hpp"
#include "http/http_depot.hpp"
#include "support/child.hpp"
#include "support/files.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

constexpr int kNoSuchNetwork = 77;

/// A network of our own in which packets to 10.9.9.2 go nowhere, and that is the name server.
bool enter_silent_network(const std::string& resolv) {
  if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return false;
  }
  const char* const made =
      "(ip link add d0 type veth peer name d1 && ip addr add 10.9.9.1/24 dev d0 && ip link set d0 up && ip link set d1 "
      "up && ip neigh add 10.9.9.2 lladdr 00:11:22:33:44:55 dev d0) 2>/dev/null";
  return std::system(made) == 0 && mount(resolv.c_str(), "/etc/resolv.conf", nullptr, MS_BIND, nullptr) == 0;
}

TEST(HttpNameServer, OneThatDoesNotAnswerCostsTheLimitAndClosingCostsNothing) {
  const TemporaryDirectory folder;
  spit(folder.path("resolv.conf"), "nameserver 10.9.9.2\n");
  const int code = run_in_child([&] {
    if (!enter_silent_network(folder.path("resolv.conf"))) return kNoSuchNetwork;
    HttpOptions options;
    options.url = "http://cache.example";
    const auto start = system_clock().steady();
    {
      const auto depot = open_http_depot(options).value();
      const auto found = depot->read(Depot::Shelf::Action, Digest(), 10, std::chrono::milliseconds(50));
      if (found || found.error().code != Code::TimedOut) return 1;
    }
    // The resolver's own patience is five seconds, twice.
    return system_clock().steady() - start < std::chrono::seconds(3) ? 0 : 2;
  });
  if (code == kNoSuchNetwork) GTEST_SKIP() << "no network namespace can be made here";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace kiln::test
