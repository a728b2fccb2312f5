// SPDX-License-Identifier: Apache-2.0
// A job starts on many nodes that share a directory and no server: each key is compiled once, and a hit makes few
// requests to the directory's metadata server. Each process is a node with its own cache, home, key and certificate.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <set>
#include <sstream>

#include "fleet/fleet_fixture.hpp"
#include "support/processes/eventually.hpp"

namespace kiln::test {
namespace {
namespace fs = std::filesystem;

class SharedDirectory : public testing::Test {
 protected:
  SharedDirectory() : trust_(directory_.path("trust")) {
    for (const char* part : {"shared/store", "shared/leases", "shared/include", "run"}) {
      fs::create_directories(directory_.path(part));
    }
    fs::permissions(directory_.path("run"), fs::perms::owner_all);
    write_text(directory_.path("shared/include/fleet.h"), "constexpr int kFleet = 3;\n");
    write_text(directory_.path("shared/include/sentinel"), "headers of November\n");
  }

  // Starts a node. All nodes run on this machine, so they share its file digests and its cores.
  FleetProcess start(unsigned node, std::vector<std::string> command) {
    const std::string name = "node" + std::to_string(node);
    Variables all = own_directories(directory_.path(name));
    all["XDG_RUNTIME_DIR"] = directory_.path("run");
    all.merge(trust_.signer(name));
    all["KILN_REMOTE"] = directory_.path("shared/store");
    all["KILN_LEASE"] = directory_.path("shared/leases");
    all["KILN_TRUST"] = trust_.policy();
    all["KILN_PCH"] = "off";
    all["KILN_REMOTE_BUDGET"] = "10000";  // real nodes have their own cores; these share two
    return {std::move(command), all, directory_.path("output" + std::to_string(node)), directory_.path()};
  }
  std::vector<std::string> client(unsigned keys, bool sealed = true) const {
    std::vector<std::string> command = {KILN_FLEET_MAIN, std::to_string(keys), "header",
                                        "root=" + directory_.path("shared/include")};
    // Relative to its root, so that its name is the same on every node.
    if (sealed) command.emplace_back("sentinel=sentinel");
    return command;
  }
  // Counts the calls with a path in the shared directory, by system call, while a node gets `keys` cached keys.
  std::map<std::string, unsigned> calls_of_a_node(unsigned node, unsigned keys, bool sealed) {
    const std::string log = directory_.path("strace" + std::to_string(node));
    std::vector<std::string> command = {"/usr/bin/strace", "-f", "-y", "-qq", "-e", "trace=%file", "-o", log};
    for (const std::string& word : client(keys, sealed)) command.push_back(word);
    FleetProcess process = start(node, command);
    EXPECT_EQ(process.exit_code(), 0) << process.output();
    EXPECT_EQ(process.number("end", "hit_remote"), keys) << process.output();
    std::map<std::string, unsigned> calls;
    std::istringstream lines(read_text(log));
    for (std::string line; std::getline(lines, line);) {
      const std::size_t name = line.find_first_not_of("0123456789 ");
      if (line.find(directory_.path("shared")) == std::string::npos || line.find("execve(") != std::string::npos)
        continue;
      if (line.find("\"\"") != std::string::npos) continue;      // fstat, which uses a descriptor
      if (line.find("resumed>") != std::string::npos) continue;  // second half of a call
      ++calls[line.substr(name, line.find('(') - name)];
    }
    return calls;
  }

  const std::int64_t made_ = monotonic_now();
  TemporaryDirectory directory_;
  FleetTrust trust_;
};

unsigned sum_of(const std::map<std::string, unsigned>& calls) {
  unsigned sum = 0;
  for (const auto& [name, count] : calls) sum += count;
  return sum;
}

std::string words_of(const std::map<std::string, unsigned>& calls) {
  std::string text;
  for (const auto& [name, count] : calls) text += " " + name + "=" + std::to_string(count);
  return text;
}

TEST_F(SharedDirectory, CompilesEachKeyOnceForAllNodes) {
  const unsigned nodes = campaign_number("KILN_FLEET_NODES", 12);
  const unsigned keys = campaign_number("KILN_FLEET_KEYS", 3);
  std::vector<FleetProcess> all;
  const std::string since = "since=" + std::to_string(monotonic_now());
  for (unsigned node = 0; node < nodes; ++node) {
    std::vector<std::string> command = client(keys);
    command.push_back(since);
    all.push_back(start(node, command));
  }
  std::set<std::string> digests;
  for (FleetProcess& process : all) {
    EXPECT_EQ(process.exit_code(std::chrono::seconds(600)), 0) << process.output();
    digests.insert(process.value("warm", "digest"));
  }
  EXPECT_EQ(digests.size(), 1U);
  EXPECT_EQ(total(all, "end", "compiled"), keys) << problems(all);
  const std::vector<double> warm = sorted_numbers(all, "warm", "ms");
  std::printf(
      "%u processes on one shared directory, %u keys: compiles=%u remote_hits=%u lease_waits=%u hedges=%u; "
      "ready first %.1f, median %.1f, last %.1f s\n%s",
      nodes, keys, total(all, "end", "compiled"), total(all, "end", "hit_remote"),
      total(all, "end", "lease_waited_finished"), total(all, "end", "hedged"), warm.front() / 1e3, median(warm) / 1e3,
      warm.back() / 1e3, problems(all).c_str());
}

TEST_F(SharedDirectory, HitWithSentinelsMakesAtMostFivePathLookups) {
  const unsigned keys = campaign_number("KILN_FLEET_KEYS", 3);
  // A file younger than two seconds is read each time, because it might change again within a clock tick.
  for (const bool sealed : {false, true}) {
    if (sealed) (void)eventually([&] { return monotonic_now() - made_ > 2'100'000'000; });
    const unsigned first = sealed ? 0 : 10;
    FleetProcess filler = start(first, client(keys, sealed));
    ASSERT_EQ(filler.exit_code(), 0) << filler.output();
    const auto one = calls_of_a_node(first + 1, 1, sealed);
    const auto all = calls_of_a_node(first + 2, keys, sealed);
    std::printf(
        "calls with a path in the shared directory, %s root: a process with 1 hit %u (%s), with %u hits %u (%s): %.2f "
        "per hit\n",
        sealed ? "sealed" : "plain", sum_of(one), words_of(one).c_str(), keys, sum_of(all), words_of(all).c_str(),
        static_cast<double>(sum_of(all)) / keys);
    if (!sealed) continue;
    EXPECT_LE(sum_of(all), 5 * keys);
  }
}

}  // namespace
}  // namespace kiln::test
