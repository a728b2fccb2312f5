// SPDX-License-Identifier: Apache-2.0
#include "base/process/system_info.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>

#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/child.hpp"
#include "support/processes/control_group.hpp"
#include "support/processes/eventually.hpp"

namespace kiln::test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// A machine with fake kernel files.
class MadeUpMachine : public testing::Test {
 protected:
  void say(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_.path() + path).parent_path());
    write_text(root_.path() + path, text);
  }
  void say_memory(const std::string& directory, std::uint64_t limit, std::uint64_t used, std::uint64_t droppable = 0) {
    say(directory + "/memory.limit_in_bytes", std::to_string(limit * kMiB) + "\n");
    say(directory + "/memory.usage_in_bytes", std::to_string(used * kMiB) + "\n");
    say(directory + "/memory.stat", "inactive_file 7\ntotal_cache 1\ntotal_inactive_file " +
                                        std::to_string(droppable * kMiB) + "\ntotal_active_file 5\n");
  }
  void say_unified_memory(const std::string& directory, const std::string& limit, std::uint64_t used,
                          std::uint64_t droppable = 0) {
    say(directory + "/memory.max", limit + "\n");
    say(directory + "/memory.current", std::to_string(used * kMiB) + "\n");
    say(directory + "/memory.stat",
        "anon 1\nnot_this_inactive_file 5\ninactive_file " + std::to_string(droppable * kMiB) + "\nworkingset 3\n");
  }
  void say_cores(const std::string& directory, const std::string& quota, const std::string& period) {
    say(directory + "/cpu.cfs_quota_us", quota + "\n");
    say(directory + "/cpu.cfs_period_us", period + "\n");
  }
  SystemFileRoot files() const { return {root_.path()}; }
  std::uint64_t free_mib() const { return available_memory(files()) / kMiB; }

  const TemporaryDirectory root_;
};

TEST(Machine, CountsUsableCpus) {
  EXPECT_EQ(run_in_child([] {
              cpu_set_t one;
              CPU_ZERO(&one);
              CPU_SET(0, &one);
              if (sched_setaffinity(0, sizeof one, &one) != 0) return 0;
              return usable_cores() == 1 ? 0 : 1;
            }),
            0);
  EXPECT_GE(usable_cores(), 1U);
}

TEST(Machine, ReportsAvailableMemory) {
  EXPECT_GT(available_memory(), 1ULL << 20);
  EXPECT_LT(available_memory(), 1ULL << 50);
}

TEST_F(MadeUpMachine, WithoutFilesIsUnlimited) {
  EXPECT_EQ(available_memory(files()), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(cgroup_cores(files()), std::nullopt);
}

TEST_F(MadeUpMachine, UsesMemAvailable) {
  say("/proc/meminfo", "MemTotal:  8000 kB\nMemFree: 1 kB\nMemAvailable:    3072 kB\n");
  EXPECT_EQ(free_mib(), 3u);
  say("/proc/meminfo", "MemTotal:  8000 kB\nNotMemAvailable: 1 kB\n");  // a kernel before 3.14
  EXPECT_EQ(available_memory(files()), std::numeric_limits<std::uint64_t>::max());
}

TEST_F(MadeUpMachine, CgroupV1UsesLowestMemoryLimit) {
  say("/proc/meminfo", "MemAvailable: 8388608 kB\n");
  say("/proc/self/cgroup", "5:cpu,cpuacct:/other\n4:memory:/a/b\n0::/\n");
  say_memory("/sys/fs/cgroup/memory/a/b", 1000, 100);
  say_memory("/sys/fs/cgroup/memory/a", 2000, 1500);
  say_memory("/sys/fs/cgroup/memory", 8796093022207, 3000);
  EXPECT_EQ(free_mib(), 500u);
  say_memory("/sys/fs/cgroup/memory/a", 4000, 1500);
  EXPECT_EQ(free_mib(), 900u);
}

TEST_F(MadeUpMachine, CgroupV2UsesLowestMemoryLimit) {
  say("/proc/self/cgroup", "0::/user.slice/job:1\n");
  say_unified_memory("/sys/fs/cgroup/user.slice/job:1", "max", 100);
  say_unified_memory("/sys/fs/cgroup/user.slice", std::to_string(700 * kMiB), 300);
  EXPECT_EQ(free_mib(), 400u);
  say("/sys/fs/cgroup/user.slice/job:1/memory.high", std::to_string(150 * kMiB) + "\n");
  EXPECT_EQ(free_mib(), 50u);
}

TEST_F(MadeUpMachine, CountsReclaimableMemoryAsFree) {
  say("/proc/self/cgroup", "4:memory:/a\n");
  say_memory("/sys/fs/cgroup/memory/a", 1000, 990, 600);
  EXPECT_EQ(free_mib(), 610u);
  say("/proc/self/cgroup", "0::/b\n");
  say_unified_memory("/sys/fs/cgroup/b", std::to_string(1000 * kMiB), 990, 300);
  EXPECT_EQ(free_mib(), 310u);
}

TEST_F(MadeUpMachine, HasNoFreeMemoryAboveCgroupLimit) {
  say("/proc/self/cgroup", "4:memory:/a\n");
  say_memory("/sys/fs/cgroup/memory/a", 100, 120, 5);
  EXPECT_EQ(available_memory(files()), 0u);
  say_memory("/sys/fs/cgroup/memory/a", 100, 50, 70);  // the files are not read atomically
  EXPECT_EQ(free_mib(), 100u);
}

TEST_F(MadeUpMachine, ContainerFindsCgroupAtMountRoot) {
  say("/proc/self/cgroup", "4:memory:/docker/0123\n1:cpu:/docker/0123\n");
  say_memory("/sys/fs/cgroup/memory", 1000, 100);
  say_cores("/sys/fs/cgroup/cpu", "150000", "100000");
  EXPECT_EQ(free_mib(), 900u);
  EXPECT_EQ(cgroup_cores(files()), 2u);
  // The path leads outside the mount, to a directory that exists.
  say_memory("/sys/fs/cgroup/elsewhere", 500, 100);
  say("/proc/self/cgroup", "4:memory:/../elsewhere\n");
  EXPECT_EQ(free_mib(), 900u);
}

TEST_F(MadeUpMachine, RoundsCpuQuotaUpAndUsesLowest) {
  say("/proc/self/cgroup", "2:cpu,cpuacct:/a/b\n");
  const struct {
    const char* quota;
    const char* above;
    std::optional<unsigned> cores;
  } table[] = {{"-1", "-1", std::nullopt}, {"200000", "-1", 2}, {"200001", "-1", 3},   {"-1", "50000", 1},
               {"400000", "300000", 3},    {"1000", "-1", 1},   {"nonsense", "-1", {}}};
  for (const auto& row : table) {
    say_cores("/sys/fs/cgroup/cpu/a/b", row.quota, "100000");
    say_cores("/sys/fs/cgroup/cpu/a", row.above, "100000");
    EXPECT_EQ(cgroup_cores(files()), row.cores) << row.quota << " below " << row.above;
  }
  say_cores("/sys/fs/cgroup/cpu/a/b", "100000", "0");
  EXPECT_EQ(cgroup_cores(files()), std::nullopt);
}

TEST_F(MadeUpMachine, FindsControllersMountedTogether) {
  say("/proc/self/cgroup", "2:cpu,cpuacct:/a\n");
  say_cores("/sys/fs/cgroup/cpu,cpuacct/a", "300000", "100000");
  EXPECT_EQ(cgroup_cores(files()), 3u);
}

TEST_F(MadeUpMachine, CgroupV2ReadsQuotaAndPeriod) {
  say("/proc/self/cgroup", "0::/a\n");
  say("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_cores(files()), std::nullopt);
  say("/sys/fs/cgroup/cpu.max", "250000 100000\n");
  EXPECT_EQ(cgroup_cores(files()), 3u);
  say("/sys/fs/cgroup/a/cpu.max", "250000");
  EXPECT_EQ(cgroup_cores(files()), 3u);
}

TEST_F(MadeUpMachine, IgnoresMalformedLines) {
  say("/proc/self/cgroup", "\n:\n::\nmemory\n4:memory:relative\n4:memory:\n0::\n4:memory:/a");
  say("/proc/meminfo", "MemAvailable: 99999999999999999999 kB\n");
  say_memory("/sys/fs/cgroup/memory/a", 10, 1);
  EXPECT_EQ(free_mib(), 9u);
}

TEST(Machine, MemoryIsLimitedByCgroup) {
  const GroupBelow group("memory");
  if (!group.set("memory.limit_in_bytes", "268435456")) GTEST_SKIP() << "cannot create a version 1 memory cgroup here";
  EXPECT_EQ(run_in_child([&] {
              if (!group.enter()) return 2;
              const std::uint64_t free = available_memory();
              return free > 200 * kMiB && free <= 256 * kMiB ? 0 : 1;
            }),
            0);
}

TEST(Machine, CoresAreLimitedByCgroup) {
  const GroupBelow group("cpu");
  if (!group.set("cpu.cfs_quota_us", "60000")) GTEST_SKIP() << "cannot create a version 1 cpu cgroup here";
  EXPECT_EQ(run_in_child([&] {
              (void)usable_cores();  // caches the value for a short time
              if (!group.enter()) return 3;
              if (cgroup_cores() != 1U) return 2;
              return eventually([] { return usable_cores() == 1; }) ? 0 : 1;
            }),
            0);
}

class Container : public MadeUpMachine {
 protected:
  void SetUp() override {
    unsetenv("container");
    unsetenv("KUBERNETES_SERVICE_HOST");
    say("/proc/1/cgroup", "4:memory:/init.scope\n0::/init.scope\n");
  }
};

TEST_F(Container, IsNotDetectedWithoutEvidence) { EXPECT_FALSE(in_container(files())); }

TEST_F(Container, IsDetectedByDockerAndPodmanFiles) {
  say("/.dockerenv", "");
  EXPECT_TRUE(in_container(files()));
  std::filesystem::remove(root_.path("/.dockerenv"));
  EXPECT_FALSE(in_container(files()));
  say("/run/.containerenv", "");
  EXPECT_TRUE(in_container(files()));
}

TEST_F(Container, IsDetectedByEnvironment) {
  for (const char* name : {"container", "KUBERNETES_SERVICE_HOST"}) {
    setenv(name, "", 1);
    EXPECT_FALSE(in_container(files())) << name;
    setenv(name, "podman", 1);
    EXPECT_TRUE(in_container(files())) << name;
    unsetenv(name);
  }
}

TEST_F(Container, IsDetectedByCgroupOfPid1) {
  for (const char* path :
       {"/docker/01", "/kubepods.slice/pod1", "/system.slice/containerd.service/x", "/lxc.payload.one"}) {
    say("/proc/1/cgroup", std::string("4:memory:") + path + "\n");
    EXPECT_TRUE(in_container(files())) << path;
  }
}

// An image build with BuildKit has an overlay as its root and no other sign.
TEST_F(Container, IsDetectedByOverlayAsRoot) {
  say("/proc/1/cgroup", "0::/\n");
  EXPECT_FALSE(in_container({root_.path(), 0xef53}));
  EXPECT_TRUE(in_container({root_.path(), 0x794c7630}));
}

TEST_F(Container, HasOwnIpcNamespaceUnlessItIsThatOfHost) {
  EXPECT_FALSE(has_own_ipc_namespace(files()));
  const std::string link = root_.path("/proc/self/ns/ipc");
  std::filesystem::create_directories(root_.path("/proc/self/ns"));
  for (const auto& [name, own] : {std::pair("ipc:[4026531839]", false), std::pair("ipc:[4026532190]", true)}) {
    std::filesystem::remove(link);
    std::filesystem::create_symlink(name, link);
    EXPECT_EQ(has_own_ipc_namespace(files()), own) << name;
  }
}

// The name and the machine id of a container change with it, but not the boot.
TEST_F(Container, IsIdentifiedByBootOfItsMachine) {
  say("/proc/sys/kernel/random/boot_id", "boot\n");
  say("/etc/machine-id", "machine\n");
  EXPECT_TRUE(host_identity(files()).starts_with("machine\n\n")) << host_identity(files());
  say("/.dockerenv", "");
  EXPECT_EQ(host_identity(files()), "boot\n");
}

TEST_F(MadeUpMachine, MemoryLimitIsSmallestOfMachineAndGroups) {
  EXPECT_EQ(memory_limit(files()), std::numeric_limits<std::uint64_t>::max());
  say("/proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable: 1048576 kB\n");
  EXPECT_EQ(memory_limit(files()), 4096 * kMiB);
  say("/proc/self/cgroup", "0::/a/b\n");
  say_unified_memory("/sys/fs/cgroup/a/b", "max", 1);
  say_unified_memory("/sys/fs/cgroup/a", std::to_string(1024 * kMiB), 1);
  EXPECT_EQ(memory_limit(files()), 1024 * kMiB);
  say("/sys/fs/cgroup/a/b/memory.high", std::to_string(512 * kMiB) + "\n");
  EXPECT_EQ(memory_limit(files()), 512 * kMiB);
  say("/proc/self/cgroup", "4:memory:/c\n");
  say_memory("/sys/fs/cgroup/memory/c", 8796093022207, 1);
  EXPECT_EQ(memory_limit(files()), 4096 * kMiB);
  say_memory("/sys/fs/cgroup/memory/c", 2048, 1);
  EXPECT_EQ(memory_limit(files()), 2048 * kMiB);
}

TEST_F(MadeUpMachine, DetectsStoppedProcess) {
  const std::pair<const char*, bool> states[] = {{"T", true}, {"t", true}, {"S", false}, {"R", false}, {"Z", false}};
  for (const auto& [state, is_stopped] : states) {
    say("/proc/7/stat", "7 (a (T) name) " + std::string(state) + " 1 7 7 0 -1 0 0 0 0 0 2 1 0 0 20 0 1 0 99 0 0\n");
    EXPECT_EQ(is_process_stopped(7, {root_.path()}), is_stopped) << state;
  }
  for (const char* text : {"", "7 (cut", "7 (cut) "}) {
    say("/proc/7/stat", text);
    EXPECT_FALSE(is_process_stopped(7, {root_.path()})) << text;
  }
  EXPECT_FALSE(is_process_stopped(8, {root_.path()})) << "there is no such process";
}

TEST(ShownCommand, MasksValuesOfSecretOptions) {
  EXPECT_EQ(format_command_line({"app", "--points", "10", "--api-key", "abc", "--token=def", "TOKEN=ghi", "x"}),
            "app --points 10 --api-key *** --token=*** TOKEN=*** x");
}

TEST(ShownCommand, ShowsOptionAfterOptionWithoutValue) {
  EXPECT_EQ(format_command_line({"app", "--keys", "--points", "10"}), "app --keys --points 10");
}

TEST_F(MadeUpMachine, NamesProgramOrScript) {
  using namespace std::string_literals;
  const std::pair<std::string, const char*> lines[] = {
      {"/opt/app/serve\0--port\0001\0"s, "serve"},
      {"python3\0-u\0-X\0dev\0/home/a/train.py\0--lr\0"s, "train.py"},
      {"/usr/bin/python3.12\0-m\0torch.run\0x\0"s, "python -m torch.run"},
      {"python\0-c\0secret = 1\0"s, "python -c"},
      {"python\0"s, "python"},
      {"", ""}};
  for (const auto& [line, name] : lines) {
    say("/proc/self/cmdline", line);
    EXPECT_EQ(program_name(files()), name);
  }
}

TEST(OwnCommand, NamesThisTest) { EXPECT_NE(current_command_line().find("test_"), std::string::npos); }

using Processor = MadeUpMachine;

TEST_F(Processor, UsesModelNameOfFirstCpu) {
  say("/proc/cpuinfo", "processor\t: 0\nmodel name\t: A Processor @ 2.0GHz\nstepping\t: 1\nmodel name\t: Another\n");
  EXPECT_EQ(processor_model(files()), "A Processor @ 2.0GHz");
}

TEST_F(Processor, FallsBackToArchitecture) {
  const std::string kind = processor_model(files());
  EXPECT_FALSE(kind.empty());
  for (const char* text : {"", "model name", "model name\t:\n", "model name\t:\nstepping: 1\n", "processor: 0\n"}) {
    say("/proc/cpuinfo", text);
    EXPECT_EQ(processor_model(files()), kind) << text;
  }
}

}  // namespace
}  // namespace kiln::test
