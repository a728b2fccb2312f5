// SPDX-License-Identifier: Apache-2.0
// The rules of apps/kiln/jit/rules against paths that the systems really wrote, or that their sources name.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "apps/kiln/jit/environment.hpp"
#include "apps/kiln/jit/rule.hpp"

namespace kiln::jit {
namespace {

const std::string kDigest(64, 'a');

struct Example {
  const char* system;
  const char* version;
  std::string entry;
  std::vector<std::string> files;    // make the entry whole
  std::vector<std::string> others;   // paths that are no entries
  std::vector<std::string> ignored;  // files that are not taken
};

std::vector<Example> examples() {
  return {
      {"triton",
       "3.9.0",
       "UAHBS5235JRIGTZTJCDMBJ4TXJTIPFTP2WEMJB4COJRALU5VR6JA",
       {"__grp__add.json", "add.cubin", "add.json"},
       {"tmp.pid_1_0b", ".kiln-fill-1"},
       {"__triton_launcher.so"}},
      {"tilelang",
       "0.1.15",
       "0.1.15/linux-x86_64/kernels/" + kDigest,
       {"device_kernel.cu", "host_kernel.cu", "kernel_lib.so", "manifest.json", "params.json"},
       {"0.1.15/linux-x86_64/.staging/" + kDigest + "_12_0a", "0.1.15/cuda-binaries/" + kDigest},
       {}},
      {"tilelang_cuda",
       "0.1.15",
       "0.1.15/cuda-binaries/" + kDigest,
       {"kernel.cubin", "metadata.json"},
       {"0.1.15/.staging/cuda-binaries/" + kDigest + ".1.2", "0.1.15/linux-x86_64/kernels/" + kDigest},
       {}},
      {"warp",
       "1.19.0",
       "1.19.0/wp___main___9d538ac/wp___main___9d538ac.sm80.cubin",
       {"wp___main___9d538ac.sm80.cubin"},
       {"1.19.0/wp___main___9d538ac/wp___main___9d538ac.cu",
        "1.19.0/wp___main___9d538ac/wp___main___9d538ac.cpu1a2b3c4d.o",
        "1.19.0/wp___main___9d538ac_p12_t34/wp___main___9d538ac.sm80.cubin", "1.19.0/lto/a.lto"},
       {"wp___main___9d538ac.cpu1a2b3c4d.o"}},
      {"warp",
       "1.19.0",
       "1.19.0/wp___main___9d538ac/wp___main___9d538ac.meta",
       {"wp___main___9d538ac.meta"},
       {"1.19.0/wp___main___9d538ac"},
       {}},
      {"flashinfer",
       "0.7.2",
       "0.7.2/80/cached_ops/silu_and_mul",
       {"silu_and_mul.so"},
       {"0.7.2/80/generated", "cubins"},
       {"build.ninja", ".ninja_log", "activation.cuda.o"}},
      {"deep_gemm",
       "0.2.5",
       "cache/sm90_fp8_gemm.0123456789abcdef",
       {".committed", "kernel.cu", "kernel.cubin", "meta.json"},
       {"tmp/0123"},
       {"kernel.sass"}},
      {"sglang",
       "0.5.23",
       "9.0/sgl_norm/build-0123456789abcdef/deps-0123456789abcdef",
       {"sgl_deps.json", "sgl_norm.so"},
       {"9.0/sgl_norm/build-0123456789abcdef/.staging-0a"},
       {"build.ninja"}},
      {"vllm",
       "0.17.0",
       "torch_compile_cache/0123456789/rank_0_0",
       {"computation_graph.py"},
       {"torch_compile_cache/0123456789"},
       {"one.lock"}},
  };
}

// Returns the rule that covers a version, or null.
const Rule* rule_of(const std::vector<Rule>& rules, const std::string& system, const char* version) {
  const auto release = parse_release(version);
  for (const Rule& rule : rules) {
    if (rule.system == system && release && rule.versions.contains(*release)) return &rule;
  }
  return nullptr;
}

TEST(BuiltInRules, MatchThePathsOfTheSystems) {
  const auto rules = load_rules("");
  ASSERT_TRUE(rules) << rules.error().message;
  for (const Example& example : examples()) {
    SCOPED_TRACE(example.system);
    const Rule* const rule = rule_of(*rules, example.system, example.version);
    ASSERT_NE(rule, nullptr);
    EXPECT_TRUE(rule->is_entry(example.entry));
    for (const std::string& other : example.others) EXPECT_FALSE(rule->is_entry(other)) << other;
    for (const std::string& file : example.files) EXPECT_FALSE(any_matches(rule->never, file)) << file;
    for (const std::string& file : example.ignored) EXPECT_TRUE(any_matches(rule->never, file)) << file;
    for (const PathPattern& needed : rule->whole) {
      EXPECT_TRUE(std::any_of(example.files.begin(), example.files.end(), [&](const std::string& file) {
        return needed.matches_file(file);
      })) << needed.text();
    }
  }
}

TEST(BuiltInRules, TritonIsKnownByAllNamesOfItsDistribution) {
  const auto rules = load_rules("");
  ASSERT_TRUE(rules) << rules.error().message;
  for (const char* name : {"triton", "pytorch-triton", "triton-rocm"}) {
    PythonEnvironment python;
    python.versions[name] = "3.5.0";
    const auto found = detect_systems(*rules, python);
    ASSERT_EQ(found.size(), 1U) << name;
    ASSERT_NE(found.front().rule, nullptr) << name;
    EXPECT_EQ(found.front().rule->distributions.front(), name);
    EXPECT_EQ(found.front().system, "triton");
  }
}

TEST(BuiltInRules, EveryRuleHasAnExampleAndEndsBelowTheNextVersion) {
  const auto rules = load_rules("");
  ASSERT_TRUE(rules) << rules.error().message;
  const std::vector<Example> all = examples();
  for (const Rule& rule : *rules) {
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Example& each) { return rule.system == each.system; }))
        << rule.system;
    EXPECT_FALSE(rule.versions.contains(*parse_release("1000"))) << rule.system << " covers unknown versions";
  }
}

TEST(BuiltInRules, LibrariesAndPythonAreHostCode) {
  const auto rules = load_rules("");
  ASSERT_TRUE(rules) << rules.error().message;
  for (const Rule& rule : *rules) {
    for (const char* file : {"a.so", "a.py", "params.pkl"}) {
      const bool needed = std::any_of(rule.whole.begin(), rule.whole.end(),
                                      [&](const PathPattern& each) { return each.matches_file(file); });
      if (needed) {
        EXPECT_TRUE(rule.host_code) << rule.system << " " << file;
      }
      EXPECT_TRUE(rule.host_code || any_matches(rule.never, file)) << rule.system << " takes " << file;
    }
  }
}

}  // namespace
}  // namespace kiln::jit
