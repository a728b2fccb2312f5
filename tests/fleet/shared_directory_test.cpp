// A job starts on many nodes that share a folder and no server: each key is compiled once, and a hit asks the folder's
// metadata server for little. Each process here is a node: it has a cache, a home, a key and a certificate of its own.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <set>
#include <sstream>

#include "fleet/rig.hpp"
#include "support/eventually.hpp"

namespace kiln::test {
namespace {
namespace fs = std::filesystem;

class SharedFolder : public testing::Test {
 protected:
  SharedFolder() : trust_(folder_.path("trust")) {
    for (const char* part : {"shared/store", "shared/leases", "shared/include", "run"}) {
      fs::create_directories(folder_.path(part));
    }
    fs::permissions(folder_.path("run"), fs::perms::owner_all);
    spit(folder_.path("shared/include/fleet.h"), "constexpr int kFleet = 3;\n");
    spit(folder_.path("shared/include/seal"), "headers of November\n");
  }

  // A node. All of them are on this machine, so they know its files' digests together and share its cores.
  FleetProcess start(unsigned node, std::vector<std::string> command) {
    const std::string name = "node" + std::to_string(node);
    Variables all = own_folders(folder_.path(name));
    all["XDG_RUNTIME_DIR"] = folder_.path("run");
    all.merge(trust_.signer(name));
    all["KILN_REMOTE"] = folder_.path("shared/store");
    all["KILN_LEASE"] = folder_.path("shared/leases");
    all["KILN_TRUST"] = trust_.policy();
    all["KILN_PCH"] = "off";
    all["KILN_REMOTE_BUDGET"] = "10000";  // nodes have cores of their own, these have two together
    return {std::move(command), all, folder_.path("output" + std::to_string(node)), folder_.path()};
  }
  std::vector<std::string> client(unsigned keys, bool sealed = true) const {
    std::vector<std::string> command = {KILN_FLEET_MAIN, std::to_string(keys), "header",
                                        "root=" + folder_.path("shared/include")};
    if (sealed) command.emplace_back("seal=seal");  // below its root, so that it has the same name on every node
    return command;
  }
  // What a node asks the shared folder by name, by the kind of call, while it gets `keys` that are there.
  std::map<std::string, unsigned> calls_of_a_node(unsigned node, unsigned keys, bool sealed) {
    const std::string log = folder_.path("strace" + std::to_string(node));
    std::vector<std::string> command = {"/usr/bin/strace", "-f", "-y", "-qq", "-e", "trace=%file", "-o", log};
    for (const std::string& word : client(keys, sealed)) command.push_back(word);
    FleetProcess process = start(node, command);
    EXPECT_EQ(process.exit_code(), 0) << process.output();
    EXPECT_EQ(process.number("end", "hit_remote"), keys) << process.output();
    std::map<std::string, unsigned> calls;
    std::istringstream lines(slurp(log));
    for (std::string line; std::getline(lines, line);) {
      const std::size_t name = line.find_first_not_of("0123456789 ");
      if (line.find(folder_.path("shared")) == std::string::npos || line.find("execve(") != std::string::npos) continue;
      if (line.find("\"\"") != std::string::npos) continue;      // fstat: asks by descriptor
      if (line.find("resumed>") != std::string::npos) continue;  // the second half of a call
      ++calls[line.substr(name, line.find('(') - name)];
    }
    return calls;
  }

  const std::int64_t made_ = monotonic_now();
  TemporaryDirectory folder_;
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

TEST_F(SharedFolder, HasEachKeyCompiledOnceForAllNodes) {
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
  EXPECT_EQ(total(all, "end", "compiled"), keys) << troubles(all);
  const std::vector<double> warm = sorted_numbers(all, "warm", "ms");
  std::printf(
      "%u processes on one shared folder, %u keys: compiles=%u remote_hits=%u lease_waits=%u hedges=%u; "
      "warm first %.1f, median %.1f, last %.1f s\n%s",
      nodes, keys, total(all, "end", "compiled"), total(all, "end", "hit_remote"),
      total(all, "end", "lease_waited_finished"), total(all, "end", "hedged"), warm.front() / 1e3, median(warm) / 1e3,
      warm.back() / 1e3, troubles(all).c_str());
}

TEST_F(SharedFolder, IsAskedByNameAtMostFiveTimesForAHitUnderSealedRoots) {
  const unsigned keys = campaign_number("KILN_FLEET_KEYS", 3);
  // What is younger than two seconds is read each time, because it might change again within a tick of its clock.
  for (const bool sealed : {false, true}) {
    if (sealed) (void)eventually([&] { return monotonic_now() - made_ > 2'100'000'000; });
    const unsigned first = sealed ? 0 : 10;
    FleetProcess filler = start(first, client(keys, sealed));
    ASSERT_EQ(filler.exit_code(), 0) << filler.output();
    const auto one = calls_of_a_node(first + 1, 1, sealed);
    const auto all = calls_of_a_node(first + 2, keys, sealed);
    std::printf(
        "calls that name the shared folder, %s root: a process with 1 hit %u (%s), with %u hits %u (%s): %.2f "
        "per hit\n",
        sealed ? "sealed" : "plain", sum_of(one), words_of(one).c_str(), keys, sum_of(all), words_of(all).c_str(),
        static_cast<double>(sum_of(all)) / keys);
    if (!sealed) continue;
    EXPECT_LE(sum_of(all), 5 * keys);
  }
}

}  // namespace
}  // namespace kiln::test
