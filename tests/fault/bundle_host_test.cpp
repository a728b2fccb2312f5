// SPDX-License-Identifier: Apache-2.0
// A bundle on machines that cannot compile its units: with a different compiler, without a compiler, without headers.
// The kiln program builds the bundle once. Every requesting process is new, has an empty cache and must not compile.
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "backends/cuda/nvrtc_library.hpp"
#include "support/fixtures/workload.hpp"

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
    ASSERT_EQ(problem_, "") << "the bundle was not built";
  }

  // Returns a new, empty cache.
  static std::string fresh() { return "cache-" + std::to_string(++caches_); }
  static std::map<std::string, std::string> with(std::map<std::string, std::string> more) {
    more.merge(workload_->served_by("app.kiln"));
    return more;
  }

  // Expects that all artifacts came from the bundle.
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

// Returns a compiler as events name it, such as "nvrtc 13.0".
std::string name_of_compiler(const std::string& libnvrtc) {
  const auto library = NvrtcLibrary::open(libnvrtc);
  if (!library) return library.error().message;
  return "nvrtc " + std::to_string((*library)->version.major) + "." + std::to_string((*library)->version.minor);
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(GeometryUnits, ManifestHas14Units85KernelsAnd6Architectures) {
  const std::string toml = read_text(std::string(KILN_SOURCE_DIR) + "/examples/kernels/geometry/kiln.toml");
  EXPECT_EQ(occurrences(toml, "\n[[unit]]\n"), 14U);
  EXPECT_EQ(occurrences(toml, "\n  \""), 85U);
  EXPECT_EQ(occurrences(toml, "\"sm_"), 6U);
}

TEST_F(BundleHost, ServesArtifactsWithDifferentCompiler) {
  const std::string other = package_nvrtc(KILN_SOURCE_DIR);
  if (other.empty()) GTEST_SKIP() << "no second NVRTC (tools/setup.sh installs one)";
  GetProcess process = workload_->ask("sm_80,sm_90", with({{"KILN_NVRTC", other}}), fresh());
  expect_served(process, 2);
}

TEST_F(BundleHost, ServesArtifactsWithoutCompiler) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to hide directories";
  const auto bare = [] { return hide(compiler_directories(KILN_SOURCE_DIR)) && toolkit_nvrtc().empty(); };
  GetProcess process = workload_->ask("sm_80,sm_90", with({}), fresh(), bare);
  expect_served(process, 2);
}

TEST_F(BundleHost, RequestsFailWithoutBundleAndCompiler) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to hide directories";
  const auto bare = [] { return hide(compiler_directories(KILN_SOURCE_DIR)); };
  GetProcess process = workload_->ask("sm_80", {}, fresh(), bare);
  EXPECT_EQ(process.exit_code(), 1) << "without the bundle: " << process.output();
  EXPECT_EQ(process.count("error "), kUnits) << process.output();
}

TEST_F(BundleHost, ServesArtifactsWithoutHeaders) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to hide directories";
  const auto bare = [] { return hide(header_directories(KILN_SOURCE_DIR)) && !toolkit_nvrtc().empty(); };
  GetProcess process = workload_->ask("sm_80,sm_90", with({}), fresh(), bare);
  expect_served(process, 2);
}

TEST_F(BundleHost, HitEventNamesCompiler) {
  const std::string compiler = name_of_compiler(toolkit_nvrtc());
  GetProcess process = workload_->ask("sm_80", with({}), fresh());
  EXPECT_EQ(process.exit_code(), 0) << process.output();
  const auto hits = lines_with(process, "event hit");
  EXPECT_EQ(hits.size(), static_cast<std::size_t>(kUnits)) << process.output();
  for (const std::string& line : hits) EXPECT_NE(line.find(compiler), std::string::npos) << line;
}

TEST_F(BundleHost, ServesDeviceOfHigherMinorVersion) {
  GetProcess process = workload_->ask("sm_86,sm_89", with({}), fresh());
  expect_served(process, 2);
  EXPECT_EQ(lines_with(process, "artifact ", "for sm_80").size(), 2U * kUnits) << process.output();
}

TEST_F(BundleHost, LoadsAllKernelsOnCompatibleDevice) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to hide directories";
  const auto bare = [] { return hide(compiler_directories(KILN_SOURCE_DIR)); };
  GetProcess process = workload_->ask(
      "load", with({{"KILN_DRIVER", KILN_FAKE_DRIVER}, {"KILN_FAKE_DRIVER_DEVICES", "sm_89"}}), fresh(), bare);
  EXPECT_EQ(process.exit_code(), 0) << process.output();
  EXPECT_EQ(process.count("event loaded"), kUnits) << process.output();
  EXPECT_EQ(process.count("done units 3 artifacts 3 kernels 18 errors 0 libnvrtc not-opened"), 1) << process.output();
}

TEST_F(BundleHost, DoesNotOpenCompilerOnHit) {
  if (access("/usr/bin/strace", X_OK) != 0) GTEST_SKIP() << "needs strace, which records the opened files";
  const std::string trace = workload_->path("trace");
  GetProcess process = workload_->ask("sm_80", with({}), fresh(), {},
                                      {"/usr/bin/strace", "-f", "-qq", "-e", "trace=open,openat,openat2", "-o", trace});
  expect_served(process, 1);
  const std::string opened = read_text(trace);
  EXPECT_NE(opened.find("app.kiln"), std::string::npos) << "the trace recorded nothing";
  for (const char* never : {"nvrtc", ".cuh", "kiln-worker"}) {
    EXPECT_EQ(opened.find(never), std::string::npos) << never << "\n" << opened;
  }
}

TEST_F(BundleHost, ExactMatchServesArtifactsOfSameCompiler) {
  // In the author's directory, whose headers are unchanged.
  auto environment = with({{"KILN_BUNDLE_MATCH", "exact"}, {"KILN_COMPILE", "never"}});
  GetProcess process =
      workload_->start({KILN_WORKLOAD_MAIN, workload_->author() + "/kiln.toml", "sm_80,sm_90"}, environment, fresh());
  expect_served(process, 2);
}

TEST_F(BundleHost, ExactMatchMissesWithDifferentCompilerAndNamesBoth) {
  const std::string other = package_nvrtc(KILN_SOURCE_DIR);
  if (other.empty()) GTEST_SKIP() << "no second NVRTC (tools/setup.sh installs one)";
  auto environment = with({{"KILN_BUNDLE_MATCH", "exact"}, {"KILN_NVRTC", other}, {"KILN_COMPILE", "never"}});
  GetProcess process =
      workload_->start({KILN_WORKLOAD_MAIN, workload_->author() + "/kiln.toml", "sm_80"}, environment, fresh());
  EXPECT_EQ(process.exit_code(), 1) << process.output();
  EXPECT_EQ(process.count("event hit"), 0) << process.output();
  const std::string both =
      "by " + name_of_compiler(toolkit_nvrtc()) + "; the compiler here is " + name_of_compiler(other);
  const auto reasons = lines_with(process, "event bundle_incompatible", both);
  EXPECT_EQ(reasons.size(), static_cast<std::size_t>(kUnits)) << process.output() << "expected: " << both;
}

TEST_F(BundleHost, FallsThroughToNextTierOnIncompatibleDevice) {
  // sm_75 is older than all architectures of the bundle.
  auto environment = with({{"KILN_COMPILE", "allowed"}});
  GetProcess process =
      workload_->start({KILN_WORKLOAD_MAIN, workload_->author() + "/kiln.toml", "sm_75"}, environment, fresh());
  EXPECT_EQ(process.exit_code(), 0) << process.output();
  EXPECT_EQ(process.count("event compiled"), kUnits) << process.output();
  // Once or more for each unit: the second lookup before a compile emits the event again.
  const auto reported = lines_with(process, "event bundle_incompatible", "sm_80");
  const std::set<std::string> reason(reported.begin(), reported.end());
  ASSERT_EQ(reason.size(), static_cast<std::size_t>(kUnits)) << process.output();
  for (const std::string& line : reason) EXPECT_NE(line.find("sm_90"), std::string::npos) << line;
}

TEST_F(BundleHost, RejectsBundleWithUntrustedKey) {
  GetProcess process = workload_->ask("sm_80", {{"KILN_BUNDLES", workload_->path("app.kiln")}}, fresh());
  EXPECT_EQ(process.exit_code(), 1) << process.output();
  EXPECT_EQ(process.count("event hit"), 0) << process.output();
  EXPECT_GE(process.count("event bundle_rejected"), 1) << process.output();
}

}  // namespace
}  // namespace kiln::test
