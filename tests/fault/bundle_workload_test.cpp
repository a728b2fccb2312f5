// SPDX-License-Identifier: Apache-2.0
// The full workload: 14 units and 85 kernels for six architectures, from examples/kernels/geometry, through the real
// programs from the compiler to the registry. It takes minutes and is therefore a campaign instead of a part of CI;
// bundle_host_test.cpp is its small version. docs/internals/long-tests.md lists its results.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>

#include "support/fixtures/workload.hpp"
#include "support/servers/registry.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kArchitectures = "sm_80,sm_86,sm_89,sm_90,sm_100,sm_120";
constexpr std::size_t kTargets = 6;
constexpr std::size_t kUnits = 14;
constexpr std::size_t kKernels = 85;

std::string done_line(std::size_t artifacts, std::size_t kernels) {
  return "done units 14 artifacts " + std::to_string(artifacts) + " kernels " + std::to_string(kernels) +
         " errors 0 libnvrtc not-opened";
}

class BundleWorkload : public testing::Test {
 protected:
  // The output of `kiln bundle create`, and how long it took.
  struct Made {
    nlohmann::json said;
    double seconds = 0;
    std::size_t compiled() const {
      std::size_t count = 0;
      for (const auto& result : said["results"]) count += result["origin"] == "compiled" ? 1U : 0U;
      return count;
    }
  };
  static Made create(const std::string& bundle, const std::string& cache, const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = {"bundle",
                                        "create",
                                        workload_->author() + "/kiln.toml",
                                        "--json",
                                        "-q",
                                        "--key",
                                        workload_->path("key"),
                                        "-o",
                                        workload_->path(bundle)};
    command.insert(command.end(), more.begin(), more.end());
    const auto start = std::chrono::steady_clock::now();
    GetProcess process = workload_->kiln(command, cache);
    const int code = process.exit_code(std::chrono::minutes(20));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_EQ(code, 0) << process.output();
    return {nlohmann::json::parse(process.output(), nullptr, false), seconds};
  }

  static void SetUpTestSuite() {
    workload_ = std::make_unique<Workload>();
    problem_ = workload_->make_key();
    if (problem_.empty()) first_ = create("app.kiln", "first");
  }
  static void TearDownTestSuite() { workload_.reset(); }
  void SetUp() override {
    ASSERT_EQ(problem_, "");
    ASSERT_TRUE(first_.said.is_object()) << "the bundle was not built";
  }

  static std::string fresh() { return "cache-" + std::to_string(++caches_); }

  // Expects that all artifacts for all architectures came from the bundle, without opening NVRTC.
  static void expect_all_served(GetProcess& process) {
    EXPECT_EQ(process.exit_code(), 0) << process.output();
    EXPECT_EQ(lines_with(process, "event hit", "[bundle]").size(), kUnits * kTargets) << process.output();
    EXPECT_EQ(process.count("event compiled"), 0);
    EXPECT_EQ(process.count("event miss"), 0);
    EXPECT_EQ(process.count(done_line(kUnits * kTargets, kKernels * kTargets)), 1) << process.output();
  }
  static void figure(const std::string& name, const GetProcess& process) {
    std::printf("figure: %s: from the bundle=%zu compiles=%d; %s\n", name.c_str(),
                lines_with(process, "event hit", "[bundle]").size(), process.count("event compiled"),
                lines_with(process, "done").empty() ? "" : lines_with(process, "done").front().c_str());
  }

  static std::unique_ptr<Workload> workload_;
  static std::string problem_;
  static Made first_;
  static int caches_;
};
std::unique_ptr<Workload> BundleWorkload::workload_;
std::string BundleWorkload::problem_;
BundleWorkload::Made BundleWorkload::first_;
int BundleWorkload::caches_ = 0;

TEST_F(BundleWorkload, CleanBuildsAreIdentical) {
  const Made second = create("again.kiln", "second");
  ASSERT_TRUE(second.said.is_object());
  std::printf("figure: built twice from clean: artifacts=%zu bytes=%zu compiles=%zu and %zu seconds=%.0f and %.0f\n",
              first_.said["artifacts"].get<std::size_t>(), first_.said["bytes"].get<std::size_t>(), first_.compiled(),
              second.compiled(), first_.seconds, second.seconds);
  std::printf("figure: sha256 %s and %s\n", first_.said["sha256"].get<std::string>().c_str(),
              second.said["sha256"].get<std::string>().c_str());
  EXPECT_EQ(first_.said["artifacts"], kUnits * kTargets);
  EXPECT_EQ(first_.compiled(), kUnits * kTargets);
  EXPECT_EQ(second.compiled(), kUnits * kTargets);
  EXPECT_EQ(first_.said["sha256"], second.said["sha256"]);
  EXPECT_TRUE(read_text(workload_->path("app.kiln")) == read_text(workload_->path("again.kiln")));
}

TEST_F(BundleWorkload, ServesNewProcessWithoutOpeningCompiler) {
  const std::string trace = workload_->path("trace");
  GetProcess process = workload_->ask(kArchitectures, workload_->served_by("app.kiln"), fresh(), {},
                                      {"/usr/bin/strace", "-f", "-qq", "-e", "trace=open,openat,openat2", "-o", trace});
  expect_all_served(process);
  figure("new process, empty cache", process);
  const std::string opened = read_text(trace);
  EXPECT_NE(opened.find("app.kiln"), std::string::npos) << "the trace recorded nothing";
  EXPECT_EQ(opened.find("nvrtc"), std::string::npos);
  EXPECT_EQ(opened.find(".cuh"), std::string::npos);
  std::printf("figure: strace: %td files opened, none of NVRTC and no header\n",
              std::count(opened.begin(), opened.end(), '\n'));
}

TEST_F(BundleWorkload, ServesArtifactsWithoutNvrtcAndHeaders) {
  const auto bare = [] { return hide(compiler_directories(KILN_SOURCE_DIR)) && toolkit_nvrtc().empty(); };
  GetProcess process = workload_->ask(kArchitectures, workload_->served_by("app.kiln"), fresh(), bare);
  expect_all_served(process);
  figure("mount namespace without NVRTC and CUDA's headers", process);
}

TEST_F(BundleWorkload, ServesArtifactsWithDifferentNvrtc) {
  auto environment = workload_->served_by("app.kiln");
  environment.emplace("KILN_NVRTC", package_nvrtc(KILN_SOURCE_DIR));
  GetProcess process = workload_->ask(kArchitectures, environment, fresh());
  expect_all_served(process);
  figure("only another NVRTC", process);
}

TEST_F(BundleWorkload, LoadsAllKernelsOnAllArchitectures) {
  const auto bare = [] { return hide(compiler_directories(KILN_SOURCE_DIR)); };
  std::size_t loaded = 0;
  for (const char* device : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120", "sm_121"}) {
    auto environment = workload_->served_by("app.kiln");
    environment.emplace("KILN_DRIVER", KILN_FAKE_DRIVER);
    environment.emplace("KILN_FAKE_DRIVER_DEVICES", device);
    GetProcess process = workload_->ask("load", environment, fresh(), bare);
    EXPECT_EQ(process.exit_code(), 0) << device << "\n" << process.output();
    EXPECT_EQ(process.count(done_line(kUnits, kKernels)), 1) << device << "\n" << process.output();
    loaded += static_cast<std::size_t>(process.count("event loaded"));
  }
  std::printf("figure: loaded by the fake driver, eight devices, no compiler: modules=%zu kernels=%zu\n", loaded,
              kKernels * 8);
}

TEST_F(BundleWorkload, ListsArchitecturesForIncompatibleDevice) {
  // Older than all architectures of the bundle, and a kind that does not run machine code of others.
  for (const char* device : {"sm_75", "sm_87"}) {
    GetProcess process = workload_->ask(device, workload_->served_by("app.kiln"), fresh());
    EXPECT_EQ(process.exit_code(), 1) << process.output();
    EXPECT_EQ(process.count("event hit"), 0);
    const auto reason = lines_with(process, "event bundle_incompatible", "sm_80, sm_86, sm_89, sm_90, sm_100, sm_120");
    EXPECT_GE(reason.size(), kUnits) << process.output();
    if (!reason.empty())
      std::printf("figure: app.kiln %s\n", reason.front().substr(reason.front().find("has it for")).c_str());
  }
}

TEST_F(BundleWorkload, BuildsFromRecordedProfile) {
  const std::string profile = workload_->path("profile.jsonl");
  // The recorded program has a cache and no bundle.
  GetProcess recorded = workload_->start({KILN_WORKLOAD_MAIN, workload_->author() + "/kiln.toml", "sm_80,sm_90"},
                                         {{"KILN_RECORD", profile}}, "first");
  ASSERT_EQ(recorded.exit_code(), 0) << recorded.output();
  const Made made = create("recorded.kiln", "first", {"--from", profile});
  ASSERT_TRUE(made.said.is_object());
  EXPECT_EQ(made.said["artifacts"], kUnits * 2);

  GetProcess again = workload_->ask("sm_80,sm_90", workload_->served_by("recorded.kiln"), fresh());
  EXPECT_EQ(again.exit_code(), 0) << again.output();
  EXPECT_EQ(again.count("event compiled"), 0);
  EXPECT_EQ(lines_with(again, "event hit", "[bundle]").size(), kUnits * 2) << again.output();
  figure("recorded, built from the record, run again in a clean cache", again);

  GetProcess explained = workload_->start(
      {KILN_PROGRAM, "explain", "--profile", profile, "--bundle", workload_->path("recorded.kiln"), "--check"},
      workload_->served_by("recorded.kiln"), fresh());
  EXPECT_EQ(explained.exit_code(), 0) << explained.output();
  ASSERT_EQ(lines_with(explained, "0 missing of 28 requested").size(), 1U) << explained.output();
  std::printf("figure: kiln explain --profile: %s\n", lines_with(explained, "0 missing").front().c_str());

  // A requested unit that the bundle lacks is reported as missing.
  GetProcess more = workload_->start({KILN_WORKLOAD_MAIN, workload_->author() + "/kiln.toml", "sm_120"},
                                     {{"KILN_RECORD", profile}}, "first");
  ASSERT_EQ(more.exit_code(), 0) << more.output();
  GetProcess lacking = workload_->start(
      {KILN_PROGRAM, "explain", "--profile", profile, "--bundle", workload_->path("recorded.kiln"), "--check"},
      workload_->served_by("recorded.kiln"), fresh());
  EXPECT_EQ(lacking.exit_code(), 1) << lacking.output();
  EXPECT_EQ(lines_with(lacking, "14 missing of 42 requested").size(), 1U) << lacking.output();
}

// One of the units changes. Measures what is sent to the registry the second time.
TEST_F(BundleWorkload, UploadsOnlyChangedUnitToRegistry) {
  if (!Registry::available()) GTEST_SKIP() << "docker-registry or skopeo is not installed";
  const auto layout = [&](const std::string& bundle, const std::string& directory) {
    GetProcess made =
        workload_->kiln({"bundle", "oci", workload_->path(bundle), "-o", workload_->path(directory)}, fresh());
    EXPECT_EQ(made.exit_code(), 0) << made.output();
    return "oci:" + workload_->path(directory) + ":latest";
  };
  Registry registry;
  ASSERT_EQ(skopeo_copy(layout("app.kiln", "layout"), registry.image("kernels:1")), "");
  const std::uint64_t first = registry.received();
  // The smallest, one medium-sized, and the two largest.
  for (const std::string unit : {"rows", "orientation", "distance", "transform"}) {
    const std::string file = workload_->author() + "/" + unit + ".cu";
    const std::string text = read_text(file);
    write_text(file, text + "\nextern \"C\" __global__ void added(double* x) { x[threadIdx.x] += 1; }\n");
    const Made changed = create(unit + ".kiln", "first");
    write_text(file, text);
    EXPECT_EQ(changed.compiled(), kUnits * kTargets);  // a signed bundle has nothing from a cache
    const std::uint64_t before = registry.received();
    ASSERT_EQ(skopeo_copy(layout(unit + ".kiln", unit), registry.image("kernels:" + unit)), "");
    const std::uint64_t moved = registry.received() - before;
    const double share = 100.0 * static_cast<double>(moved) / static_cast<double>(first);
    std::printf("figure: %s.cu changed: compiles=%zu, the registry received %ju bytes after %ju: %.1f %%\n",
                unit.c_str(), changed.compiled(), static_cast<std::uintmax_t>(moved),
                static_cast<std::uintmax_t>(first), share);
    EXPECT_LE(share, 15.0) << unit;
  }
}

}  // namespace
}  // namespace kiln::test
