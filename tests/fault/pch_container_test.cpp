// SPDX-License-Identifier: Apache-2.0
// Precompiled headers with default settings in a container like that of a container runtime: its own mounts and
// processes, an overlay as its root, 64 MB of shared memory and a control group of 1 GB. As in an image build with
// BuildKit, only the overlay shows that it is one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/toolkit.hpp"
#include "support/processes/control_group.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/get_process.hpp"
#include "support/processes/private_mounts.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

// $1: directory with upper, work and root, on its own file system. $2: directory to mount as volume, or nothing.
constexpr const char* kInside = R"(set -e
root=$1/root; volume=$2; shift 2
mount -t overlay overlay -o "lowerdir=/,upperdir=${root%/root}/upper,workdir=${root%/root}/work" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777,size=64m shm "$root/dev/shm"
rm -f "$root/.dockerenv" "$root/run/.containerenv"
if [ -n "$volume" ]; then mkdir -p "$root/volume"; mount --bind "$volume" "$root/volume"; fi
exec chroot "$root" "$@")";

class PchContainer : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    if (const Status entered = enter_own_mounts(); !entered) GTEST_SKIP() << entered.error().message;
    const std::string image = directory_.path("image");
    fs::create_directory(directory_.path("layers"));
    fs::create_directory(directory_.path("volume"));
    ASSERT_TRUE(run_shell("truncate -s 3G " + image + " && mkfs.ext4 -q -F " + image));
    layers_ = std::make_unique<Mounted>("-o loop", image, directory_.path("layers"));
    if (!*layers_) GTEST_SKIP() << "cannot mount a file here";
    for (const char* name : {"upper", "work", "root"}) fs::create_directory(directory_.path("layers/") + name);
    const std::string inside = std::string("sh -c '") + kInside + "' sh " + directory_.path("layers");
    if (!run_shell("unshare --mount --pid --fork " + inside + " '' true"))
      GTEST_SKIP() << "namespaces or overlays are not permitted here";
    if (!group_.set("memory.limit_in_bytes", kLimit) && !group_.set("memory.max", kLimit))
      GTEST_SKIP() << "cannot create a control group with a memory limit here";
  }
  GetProcess start(std::vector<std::string> units, const std::string& cache, const std::string& volume,
                   std::vector<std::string> program = {}) {
    const std::map<std::string, std::string> environment{{"KILN_CACHE_DIR", cache}, {"HOME", "/root"}};
    std::vector<std::string> before{"unshare", "--mount", "--pid", "--fork", "--kill-child",
                                    "sh",      "-c",      kInside, "sh",     directory_.path("layers"),
                                    volume};
    before.insert(before.end(), program.begin(), program.end());
    return {{std::move(units), environment, std::move(before), [this] { return limited_ ? group_.enter() : true; }},
            directory_.path("out-" + std::to_string(++outputs_))};
  }
  // Returns the files of precompiled headers below a directory.
  std::vector<std::string> headers_in(const std::string& directory) const {
    std::vector<std::string> found = files_below(directory_.path(directory));
    std::erase_if(found, [](const std::string& file) {
      return !file.ends_with(".pch") && !file.ends_with(".kpch") && file.find("/pch/") == std::string::npos;
    });
    return found;
  }
  // Returns the size of the container's layer in megabytes, without the profiles that tools/coverage creates there.
  std::uintmax_t layer() const {
    std::uintmax_t bytes = 0;
    for (const std::string& file : files_below(directory_.path("layers/upper"))) {
      const bool counts = fs::is_regular_file(file) && !file.ends_with(".profraw");  // not the marks of removed files
      if (counts) bytes += fs::file_size(file);
    }
    return bytes >> 20;
  }
  void expect_enough_memory(const GetProcess& process) const {
    EXPECT_EQ(process.count("event worker_lost"), 0) << process.output();
    EXPECT_EQ(process.count("event pch_dropped"), 0) << process.output();
    const std::string killed = group_.get("memory.oom_control") + group_.get("memory.events");
    EXPECT_EQ(killed.find("oom_kill 0") == std::string::npos && !killed.empty(), false) << killed;
  }

  static constexpr const char* kLimit = "1073741824";
  const TemporaryDirectory directory_;
  const GroupBelow group_{"memory"};
  bool limited_ = false;
  std::unique_ptr<Mounted> layers_;
  int outputs_ = 0;
};

// 190 MB of precompiled headers are more than the memory bound of a container of 1 GB. They are in no layer.
TEST_F(PchContainer, CubHeadersHaveNoNameInContainerOfOneGigabyte) {
  limited_ = true;
  GetProcess process = start({"1", "2", "3"}, "/var/kiln-test-cache", "");
  ASSERT_EQ(process.exit_code(), 0) << process.output();
  EXPECT_EQ(process.count("event compiled"), 3) << process.output();
  EXPECT_EQ(process.count("event pch_created"), 1) << process.output();
  EXPECT_EQ(process.count("event pch_used"), 1) << process.output();
  expect_enough_memory(process);
  EXPECT_TRUE(headers_in("layers/upper").empty());
  EXPECT_LT(layer(), 10U);
  std::printf("figure: container of 1 GB: peak %s\n",
              (group_.get("memory.max_usage_in_bytes") + group_.get("memory.peak")).c_str());
}

TEST_F(PchContainer, KilledProcessLeavesNothing) {
  std::vector<std::string> units;
  for (int i = 0; i < 200; ++i) units.push_back("small" + std::to_string(i));
  GetProcess process = start(units, "/var/kiln-test-cache", "");
  ASSERT_TRUE(eventually([&] { return process.count("event pch_used") > 0; })) << process.output();
  process.kill_now();
  EXPECT_TRUE(headers_in("layers/upper").empty());
  EXPECT_LT(layer(), 5U);
}

TEST_F(PchContainer, CacheOnVolumeServesTheNextContainer) {
  limited_ = true;
  GetProcess first = start({"small1", "small2"}, "/volume/cache", directory_.path("volume"));
  ASSERT_EQ(first.exit_code(), 0) << first.output();
  EXPECT_EQ(first.count("event pch_created"), 1) << first.output();
  EXPECT_TRUE(headers_in("layers/upper").empty());
  EXPECT_FALSE(headers_in("volume").empty());
  // Another container has another host name, and its own copy of everything but the volume.
  for (const char* name : {"upper", "work", "root"}) {
    fs::remove_all(directory_.path("layers/") + name);
    fs::create_directory(directory_.path("layers/") + name);
  }
  GetProcess second = start({"small3"}, "/volume/cache", directory_.path("volume"),
                            {"unshare", "--uts", "sh", "-c", "hostname another; exec \"$@\"", "sh"});
  ASSERT_EQ(second.exit_code(), 0) << second.output();
  EXPECT_EQ(second.count("event pch_used"), 1) << second.output();
  EXPECT_EQ(second.count("event pch_created"), 0) << second.output();
}

}  // namespace
}  // namespace kiln::test
