// SPDX-License-Identifier: Apache-2.0
#include "support/processes/virtual_hosts.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdio>

namespace kiln::test {
namespace {

sockaddr_in at(const std::string& address, std::uint16_t port) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(port);
  inet_pton(AF_INET, address.c_str(), &place.sin_addr);
  return place;
}

bool reaches(const std::string& address, std::uint16_t port) {
  const Fd socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in place = at(address, port);
  return connect(socket_fd.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0;
}

std::string name_of_namespace() {
  char name[64] = {};
  return readlink("/proc/thread-self/ns/net", name, sizeof name - 1) > 0 ? name : "";
}

TEST(Hosts, ReachServersFromOwnNetworkNamespaces) {
  if (const std::string reason = VirtualHosts::unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  const std::string before = name_of_namespace();
  const VirtualHosts hosts(2);
  Fd server;
  {
    const auto inside = hosts.enter_servers();
    server = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in place = at(VirtualHosts::kServer, 7777);
    ASSERT_EQ(bind(server.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place), 0);
    ASSERT_EQ(listen(server.get(), 8), 0);
  }
  for (unsigned host = 0; host < hosts.count(); ++host) {
    const auto inside = hosts.enter(host);
    EXPECT_TRUE(reaches(VirtualHosts::kServer, 7777)) << host;
    EXPECT_FALSE(reaches("127.0.0.1", 7777)) << "each host has its own loopback";
  }
  EXPECT_EQ(name_of_namespace(), before);
}

TEST(Hosts, LeaveNothingBehind) {
  if (const std::string reason = VirtualHosts::unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  const std::string before = read_text("/proc/net/dev");
  { const VirtualHosts hosts(3); }
  const std::string after = read_text("/proc/net/dev");
  EXPECT_EQ(after.find("port0"), std::string::npos) << after;
  EXPECT_EQ(after.find("fleet"), std::string::npos) << before << after;
}

}  // namespace
}  // namespace kiln::test
