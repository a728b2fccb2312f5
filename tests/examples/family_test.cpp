// SPDX-License-Identifier: Apache-2.0
// The family of many_kernels as a kiln.toml: `kiln split` writes it, a bundle is built of it, and a program that may
// not compile finds its kernels in the bundle.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "examples/examples.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/toolkit.hpp"

namespace kiln::test {
namespace {

constexpr const char* kExample = KILN_SOURCE_DIR "/examples/many_kernels";

class ExampleFamily : public Examples {
 protected:
  // Returns the environment of a machine with a bundle, an empty cache and no permission to compile.
  Variables only_bundle(const std::string& bundle) const {
    return {{"KILN_BUNDLES", path(bundle)},    {"KILN_TRUST_UNSIGNED", "1"},
            {"KILN_COMPILE", "never"},         {"KILN_CACHE_DIR", path("empty")},
            {"KILN_DRIVER", KILN_FAKE_DRIVER}, {"KILN_FAKE_DRIVER_DEVICES", "sm_90"}};
  }
  nlohmann::json create(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"bundle", "create", "--json"});
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return ran.json();
  }
};

TEST_F(ExampleFamily, SplitWritesManifestOfExample) {
  std::filesystem::copy(std::string(kExample) + "/kernels", path("kernels"));
  const Ran ran = run({"split", "kernels/semiring.cu", "--arch", "sm_80,sm_90", "--json"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.json()["instances"].size(), 31U);
  EXPECT_EQ(ran.json()["omitted"].size(), 0U) << ran.out;
  EXPECT_EQ(ran.json()["preamble"], "kernels/semiring.cuh");
  EXPECT_EQ(read_text(path("kiln.toml")), read_text(std::string(kExample) + "/kiln.toml"));
}

TEST_F(ExampleFamily, BundleOfManifestServesAll31Kernels) {
  if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  const nlohmann::json made = create({std::string(kExample) + "/kiln.toml", "--arch", "sm_90", "-o", "family.kiln"});
  EXPECT_EQ(made["results"].size(), 31U) << made;
  const nlohmann::json served = report({"--backend", "cuda", "--all"}, only_bundle("family.kiln"));
  EXPECT_EQ(served["compiled"], 0) << served;
  EXPECT_EQ(served["cached"], 31);
  const Ran listed = run({"bundle", "ls", "family.kiln"});
  EXPECT_NE(listed.out.find("semiring.cu:gemm_max_times_i64"), std::string::npos) << listed.out;
  std::printf("figure: a bundle of the family, CUDA with the fake driver: %d of 31 kernels found, %d compiled\n",
              served.value("cached", -1), served.value("compiled", -1));
}

TEST_F(ExampleFamily, ProfileBuildsBundleOfFiveUsedKernels) {
  const nlohmann::json recorded = report({"--backend", "opencl"}, {{"KILN_RECORD", path("profile.jsonl")}});
  EXPECT_EQ(recorded["checked"], 5);
  EXPECT_NE(read_text(path("profile.jsonl")).find("\"unit\":\"semiring.cl:backward_a_f32\""), std::string::npos);
  // The family in OpenCL has the same instances.
  std::string manifest = read_text(std::string(kExample) + "/kiln.toml");
  for (const auto& [from, to] :
       Variables{{"\"semiring.cu\"", "\"semiring.cl\""},
                 {"\"kernels/semiring.cuh\"", '"' + std::string(kExample) + "/kernels/semiring.cl\""}}) {
    manifest.replace(manifest.find(from), from.size(), to);
  }
  write("kiln.toml", manifest);
  const nlohmann::json made = create({"kiln.toml", "--from", "profile.jsonl", "-o", "five.kiln"});
  EXPECT_EQ(made["results"].size(), 5U) << made;
  EXPECT_EQ(made["unmatched"].size(), 0U) << made;
  const nlohmann::json served = report({"--backend", "opencl"}, only_bundle("five.kiln"));
  EXPECT_EQ(served["compiled"], 0) << served;
  EXPECT_EQ(served["checked"], 5);
}

}  // namespace
}  // namespace kiln::test
