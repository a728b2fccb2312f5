// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "base/clock.hpp"
#include "remote/http/http_object_store.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/child.hpp"

namespace kiln::test {
namespace {

constexpr int kNoSuchNetwork = 77;

/// Enters a private network whose name server, 10.9.9.2, drops all packets.
bool enter_silent_network(const std::string& resolv) {
  if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return false;
  }
  const char* const made =
      "(ip link add d0 type veth peer name d1 && ip addr add 10.9.9.1/24 dev d0 && ip link set d0 up && ip link set d1 "
      "up && ip neigh add 10.9.9.2 lladdr 00:11:22:33:44:55 dev d0) 2>/dev/null";
  return std::system(made) == 0 && mount(resolv.c_str(), "/etc/resolv.conf", nullptr, MS_BIND, nullptr) == 0;
}

TEST(HttpNameServer, UnresponsiveDnsCostsTimeoutAndClosingIsFree) {
  const TemporaryDirectory directory;
  write_text(directory.path("resolv.conf"), "nameserver 10.9.9.2\n");
  const int code = run_in_child([&] {
    if (!enter_silent_network(directory.path("resolv.conf"))) return kNoSuchNetwork;
    HttpOptions options;
    options.url = "http://cache.example";
    const auto start = system_clock().steady();
    {
      const auto object_store = open_http_object_store(options).value();
      const auto found =
          object_store->read(ObjectStore::Bucket::ActionCache, Digest(), 10, std::chrono::milliseconds(50));
      if (found || found.error().code != Code::TimedOut) return 1;
    }
    // The resolver's own timeout is five seconds, twice.
    return system_clock().steady() - start < std::chrono::seconds(3) ? 0 : 2;
  });
  if (code == kNoSuchNetwork) GTEST_SKIP() << "cannot create a network namespace";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace kiln::test
