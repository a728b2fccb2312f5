// A bundle on machines that cannot compile what is in it: with another compiler, with none, without any header. The
// kiln program builds it once; every process that asks is a new one with an empty cache and may compile nothing.
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "support/workload.hpp"

namespace kiln::test {
namespace {

constexpr int kUnits = 3;
constexpr int kKernels = 18;

class BundleHost : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (toolkit_nvrtc().empty()) return;
    workload_ =
        std::make_unique<Workload>(std::vector<std::string>{"rows.cu", "packing.cu", "grid.cu"}, R"("sm_80", "sm_90")");
    problem_ = workload_->make_key();
    if (!problem_.empty()) return;
    GetProcess made = workload_->kiln({"bundle", "create", workload_->author() + "/kiln.toml", "-o",
                                       workload_->path("app.kiln"), "--key", workload_->path("key")},
                                      "build");
    if (made.exit_code() != 0) problem_ = made.output();
  }
  static void TearDownTestSuite() { workload_.reset(); }

  void SetUp() override {
    if (workload_ == nullptr) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    ASSERT_EQ(problem_, "") << "there is no bundle to test";
  }

  // A cache that nobody has used.
  static std::string fresh() { return "cache-" + std::to_string(++caches_); }
  static std::map<std::string, std::string> with(std::map<std::string, std::string> more) {
    more.merge(workload_->served_by("app.kiln"));
    return more;
  }

  // All of it came from the bundle, and from nowhere else.
  static void expect_served(GetProcess& process, int targets) {
    EXPECT_EQ(process.exit_code(), 0) << process.output();
    EXPECT_EQ(lines_with(process, "event hit", "[bundle]").size(), static_cast<std::size_t>(kUnits * targets))
        << process.output();
    EXPECT_EQ(process.count("event compiled"), 0) << process.output();
    EXPECT_EQ(process.count("done units " + std::to_string(kUnits) + " artifacts " + std::to_string(kUnits * targets) +
                            " kernels " + std::to_string(kKernels * targets) + " errors 0 libnvrtc not-opened"),
              1)
        << process.output();
  }

  static std::unique_ptr<Workload> workload_;
  static std::string problem_;
  static int caches_;
};
std::unique_ptr<Workload> BundleHost::workload_;
std::string BundleHost::problem_;
int BundleHost::caches_ = 0;

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(GeometryUnits, AreFourteenWithEightyFiveKernelsForSixArchitectures) {
  const std::string toml = slurp(std::string(KILN_SOURCE_DIR) + "/kernels/geometry/kiln.toml");
  EXPECT_EQ(occurrences(toml, "\n[[unit]]\n"), 14U);
  EXPECT_EQ(occurrences(toml, "\n  \""), 85U);
  EXPECT_EQ(occurrences(toml, "\"sm_"), 6U);
}

TEST_F(BundleHost, ServesWhereOnlyAnotherCompilerIs) {
  const std::string other = package_nvrtc(KILN_SOURCE_DIR);
  if (other.empty()) GTEST_SKIP() << "no second NVRTC (tools/setup.sh installs one)";
  GetProcess process = workload_->ask("sm_80,sm_90", with({{"KILN_NVRTC", other}}), fresh());
  expect_served(process, 2);
}

TEST_F(BundleHost, ServesWhereNoCompilerIs) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to hide folders";
  const auto bare = [] { return hide(compiler_folders(KILN_SOURCE_DIR)) && toolkit_nvrtc().empty(); };
  GetProcess process = workload_->ask("sm_80,sm_90", with({}), fresh(), bare);
  expect_served(process, 2);
}

TEST_F(BundleHost, IsWhatServesWhereNoCompilerIs) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to hide folders";
  const auto bare = [] { return hide(compiler_folders(KILN_SOURCE_DIR)); };
  GetProcess process = workload_->ask("sm_80", {}, fresh(), bare);
  EXPECT_EQ(process.exit_code(), 1) << "without the bundle: " << process.output();
  EXPECT_EQ(process.count("error "), kUnits) << process.output();
}

TEST_F(BundleHost, ServesWhereNoHeaderIs) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to hide folders";
  const auto bare = [] { return hide(header_folders(KILN_SOURCE_DIR)) && !toolkit_nvrtc().empty(); };
  GetProcess process = workload_->ask("sm_80,sm_90", with({}), fresh(), bare);
  expect_served(process, 2);
}

TEST_F(BundleHost, NamesTheCompilerThatBuiltWhatItServes) {
  GetProcess process = workload_->ask("sm_80", with({}), fresh());
  for (const std::string& line : lines_with(process, "event hit")) {
    EXPECT_NE(line.find("nvrtc 13.0"), std::string::npos) << line;
  }
}

TEST_F(BundleHost, ServesADeviceOfAHigherMinor) {
  GetProcess process = workload_->ask("sm_86,sm_89", with({}), fresh());
  expect_served(process, 2);
  EXPECT_EQ(lines_with(process, "artifact ", "for sm_80").size(), 2U * kUnits) << process.output();
}

TEST_F(BundleHost, LoadsEveryKernelOnADeviceThatItFits) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to hide folders";
  const auto bare = [] { return hide(compiler_folders(KILN_SOURCE_DIR)); };
  GetProcess process = workload_->ask(
      "load", with({{"KILN_DRIVER", KILN_DRIVER_DOUBLE}, {"KILN_DOUBLE_DEVICES", "sm_89"}}), fresh(), bare);
  EXPECT_EQ(process.exit_code(), 0) << process.output();
  EXPECT_EQ(process.count("event loaded"), kUnits) << process.output();
  EXPECT_EQ(process.count("done units 3 artifacts 3 kernels 18 errors 0 libnvrtc not-opened"), 1) << process.output();
}

TEST_F(BundleHost, LooksAtNoCompilerWhereItServes) {
  if (access("/usr/bin/strace", X_OK) != 0) GTEST_SKIP() << "no strace, which sees what is opened";
  const std::string trace = workload_->path("trace");
  GetProcess process = workload_->ask("sm_80", with({}), fresh(), {},
                                      {"/usr/bin/strace", "-f", "-qq", "-e", "trace=open,openat,openat2", "-o", trace});
  expect_served(process, 1);
  const std::string opened = slurp(trace);
  EXPECT_NE(opened.find("app.kiln"), std::string::npos) << "the trace saw nothing";
  for (const char* never : {"nvrtc", ".cuh", "kiln-worker"}) {
    EXPECT_EQ(opened.find(never), std::string::npos) << never << "\n" << opened;
  }
}

TEST_F(BundleHost, ServesExactlyWhatThisCompilerWouldMake) {
  // As its author has it, whose headers are what they were.
  auto environment = with({{"KILN_BUNDLE_MATCH", "exact"}, {"KILN_COMPILE", "never"}});
  GetProcess process =
      workload_->start({KILN_WORKLOAD_MAIN, workload_->author() + "/kiln.toml", "sm_80,sm_90"}, environment, fresh());
  expect_served(process, 2);
}

TEST_F(BundleHost, ExactlyMissesWhereOnlyAnotherCompilerIsAndNamesBoth) {
  const std::string other = package_nvrtc(KILN_SOURCE_DIR);
  if (other.empty()) GTEST_SKIP() << "no second NVRTC (tools/setup.sh installs one)";
  auto environment = with({{"KILN_BUNDLE_MATCH", "exact"}, {"KILN_NVRTC", other}, {"KILN_COMPILE", "never"}});
  GetProcess process =
      workload_->start({KILN_WORKLOAD_MAIN, workload_->author() + "/kiln.toml", "sm_80"}, environment, fresh());
  EXPECT_EQ(process.exit_code(), 1) << process.output();
  EXPECT_EQ(process.count("event hit"), 0) << process.output();
  const auto why = lines_with(process, "event bundle_unfit", "13.0");
  ASSERT_EQ(why.size(), static_cast<std::size_t>(kUnits)) << process.output();
  for (const std::string& line : why) EXPECT_NE(line.find("13.4"), std::string::npos) << line;
}

TEST_F(BundleHost, AsksTheNextTierWhereNothingFitsTheDevice) {
  // sm_75 is older than all that it has.
  auto environment = with({{"KILN_COMPILE", "allowed"}});
  GetProcess process =
      workload_->start({KILN_WORKLOAD_MAIN, workload_->author() + "/kiln.toml", "sm_75"}, environment, fresh());
  EXPECT_EQ(process.exit_code(), 0) << process.output();
  EXPECT_EQ(process.count("event compiled"), kUnits) << process.output();
  // Once or more of each: looking again before a compile tells it again.
  const auto told = lines_with(process, "event bundle_unfit", "sm_80");
  const std::set<std::string> why(told.begin(), told.end());
  ASSERT_EQ(why.size(), static_cast<std::size_t>(kUnits)) << process.output();
  for (const std::string& line : why) EXPECT_NE(line.find("sm_90"), std::string::npos) << line;
}

TEST_F(BundleHost, IsNotUsedWhereNobodyBelievesItsKey) {
  GetProcess process = workload_->ask("sm_80", {{"KILN_BUNDLES", workload_->path("app.kiln")}}, fresh());
  EXPECT_EQ(process.exit_code(), 1) << process.output();
  EXPECT_EQ(process.count("event hit"), 0) << process.output();
  EXPECT_GE(process.count("event bundle_refused"), 1) << process.output();
}

}  // namespace
}  // namespace kiln::test
