// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "apps/run_kiln.hpp"
#include "support/fixtures/files.hpp"

namespace kiln::test {
namespace {

using Strings = std::vector<std::string>;

// Device code with every form of instance, and code that no family can contain.
constexpr const char* kHeader = R"(#define KERNEL extern "C" __global__ void
#define SCALE(T, suffix)                               \
  KERNEL __launch_bounds__(256) scale_##suffix(T* x) { \
    x[threadIdx.x] *= 2; /* SCALE(a, b) */             \
  }
)";
constexpr const char* kSource = R"(#include "scale.h"
#define BOTH(name) SCALE(float, f_##name) SCALE(double, d_##name);
#define LIST(X) X(one) X(two)
#define PASTE(a, b) a##b
#define CONCAT(a, b) PASTE(a, b)
#define ZERO(name) KERNEL CONCAT(zero_, name)(int* p) { *p = 0; }
#define PAIR(a, b) KERNEL a() {} KERNEL b() {}
template <class T, int N>
__global__ void fill(T* x) { x[threadIdx.x] = N; }
template <class T> __global__ void lonely(T* x) { *x = 0; }
template __global__ void fill<float, 8>(float*);
template __global__ void fill<double,
                              4>(double*);
SCALE(int, i)
// SCALE(comment, c)
SCALE(long long,
      ll);
BOTH(x)
LIST(ZERO)
PAIR(a, b)
#ifdef NEVER
SCALE(char, c)
#endif
KERNEL plain(int* p) { *p = 1; }
)";

class SplitCommand : public KilnProgram {
 protected:
  void SetUp() override {
    KilnProgram::SetUp();
    write("k/scale.h", kHeader);
    write("k/scale.cu", kSource);
  }
  nlohmann::json split(Strings arguments) {
    arguments.insert(arguments.begin(), "split");
    arguments.emplace_back("--json");
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return ran.json();
  }
};

TEST_F(SplitCommand, FindsMacroCallsListsAndTemplateInstances) {
  const nlohmann::json found = split({"k/scale.cu"});
  Strings instances;
  for (const auto& one : found["instances"]) {
    instances.push_back(one["line"].dump() + ' ' + one["from"].get<std::string>() + ' ' +
                        one["entry"].get<std::string>() + " = " + one["source"].get<std::string>());
  }
  EXPECT_EQ(instances,
            (Strings{"11 fill fill<float, 8> = ", "12 fill fill<double, 4> = ", "14 SCALE scale_i = SCALE(int, i)\n",
                     "16 SCALE scale_ll = SCALE(long long,\n      ll)\n", "18 SCALE scale_f_x = SCALE(float, f_x)\n",
                     "18 SCALE scale_d_x = SCALE(double, d_x)\n", "19 ZERO zero_one = ZERO(one)\n",
                     "19 ZERO zero_two = ZERO(two)\n"}));
}

TEST_F(SplitCommand, ListsOmittedCodeWithReason) {
  const nlohmann::json found = split({"k/scale.cu"});
  Strings reasons;
  for (const auto& one : found["omitted"]) {
    const std::string reason = one["reason"];
    reasons.push_back(one["line"].dump() + ' ' + reason.substr(0, reason.find_first_of(";,")));
  }
  EXPECT_EQ(reasons, (Strings{"10 template 'lonely' has no explicit instantiation", "20 macro PAIR defines 2 kernels",
                              "22 SCALE is used inside an #if",
                              "24 kernel 'plain' stays in the preamble and is compiled with each instance"}));
  const Ran printed = run({"split", "k/scale.cu", "--force"});
  EXPECT_NE(printed.out.find("left out: k/scale.cu:20: macro PAIR defines 2 kernels; an instance has one\n"),
            std::string::npos)
      << printed.out;
  EXPECT_NE(printed.out.find("8 instances in kiln.toml; the preamble is k/scale.preamble.cu, a new file"),
            std::string::npos)
      << printed.out;
}

TEST_F(SplitCommand, PreambleIsFileWithoutInstances) {
  split({"k/scale.cu"});
  std::string expected = kSource;
  for (const char* instance : {"template __global__ void fill<float, 8>(float*);\n",
                               "template __global__ void fill<double,\n                              4>(double*);\n",
                               "SCALE(int, i)\n", "SCALE(long long,\n      ll);\n", "BOTH(x)\n", "\nLIST(ZERO)"}) {
    ASSERT_NE(expected.find(instance), std::string::npos) << instance;
    expected.erase(expected.find(instance), std::string(instance).size());
  }
  EXPECT_EQ(read_text(path("k/scale.preamble.cu")), expected);
}

TEST_F(SplitCommand, HeaderIsPreambleIfFileHasNothingElse) {
  write("k/scale.cu", "// Kernels.\n#include \"scale.h\"\n\nSCALE(int, i)\nSCALE(float, f)\n");
  const nlohmann::json found = split({"k/scale.cu", "-o", "k/kiln.toml", "--arch", "sm_80,sm_90", "-DN=4"});
  EXPECT_EQ(found["preamble"], "k/scale.h");
  EXPECT_EQ(found["preamble_written"], false);
  EXPECT_EQ(read_text(path("k/kiln.toml")),
            "# The family of scale.cu, as 'kiln split' found it.\n"
            "architectures = [\"sm_80\", \"sm_90\"]\n\n[[family]]\nname = \"scale.cu\"\npreamble = \"scale.h\"\n"
            "options = [\"-DN=4\"]\n\n[family.instances]\nscale_i = \"SCALE(int, i)\\n\"\n"
            "scale_f = \"SCALE(float, f)\\n\"\n");
}

TEST_F(SplitCommand, ManifestCompilesMacrosAndNameExpressions) {
  write("k/scale.cu",
        "#include \"scale.h\"\ntemplate <class T, int N>\n__global__ void fill(T* x) { x[threadIdx.x] = N; }\n"
        "SCALE(int, i)\n");
  split({"k/scale.cu", "--arch", "sm_80", "--entry", "fill<float, 8>"});
  const Ran compiled = run({"compile", "--manifest", "kiln.toml", "-o", "out/", "--json"});
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  const nlohmann::json results = compiled.json()["results"];
  ASSERT_EQ(results.size(), 2U) << compiled.out;
  EXPECT_EQ(results[0]["file"], "k/scale.preamble.cu:fill<float, 8>");
  EXPECT_NE(results[0]["entries"]["fill<float, 8>"].get<std::string>().find("fillIf"), std::string::npos) << results;
  EXPECT_EQ(results[1]["entries"]["scale_i"], "scale_i");
  EXPECT_TRUE(std::filesystem::exists(path("out/scale.fill<float, 8>.sm_80.cubin")));
  EXPECT_TRUE(std::filesystem::exists(path("out/scale.scale_i.sm_80.cubin")));
}

TEST_F(SplitCommand, ReplacesFilesOnlyWithForce) {
  write("k/scale.preamble.cu", "mine\n");
  const Ran refused = run({"split", "k/scale.cu"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(refused.says("k/scale.preamble.cu exists; nothing was written; add --force")) << refused.err;
  EXPECT_EQ(read_text(path("k/scale.preamble.cu")), "mine\n");
  EXPECT_FALSE(std::filesystem::exists(path("kiln.toml"))) << "nothing is written if one of the files exists";
  EXPECT_EQ(run({"split", "k/scale.cu", "--force"}).exit_code, 0);
  EXPECT_NE(read_text(path("k/scale.preamble.cu")), "mine\n");
}

TEST_F(SplitCommand, ReportsFileWithoutInstances) {
  write("k.cu", kSmallKernel);
  const Ran none = run({"split", "k.cu"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_TRUE(none.says("k.cu:1: kernel 'k' stays in the preamble")) << none.err;
  EXPECT_TRUE(none.says("has no kernels of macros or templates that can be split; nothing was written")) << none.err;
  EXPECT_FALSE(std::filesystem::exists(path("kiln.toml")));
  EXPECT_EQ(run({"split", "missing.cu"}).exit_code, 1);
  EXPECT_EQ(run({"split"}).exit_code, 2);
}

// A kernel whose meaning depends on T and f.
constexpr const char* kDependent =
    "#define KERNEL(name) extern \"C\" __global__ void name(T* x) { *x = f(1); }\n__device__ float f(float);\n"
    "typedef float T;\n";

TEST_F(SplitCommand, WritesNothingIfLaterCodeCouldChangeInstances) {
  write("k/later.h", "");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"#undef T\n#define T double\n", "#undef T"},
      {"#define T double\n", "#define T"},
      {"#undef KERNEL\n", "#undef KERNEL"},
      {"#include \"later.h\"\n", "#include"},
      {"#pragma push_macro(\"T\")\n", "#pragma"},
      {"__device__ float f(int x) { return 2; }\n", "a declaration of 'f'"},
      {"#define F(type) __device__ float f(type x) { return 2; }\nF(int)\n", "a declaration of 'f'"},
      {"using namespace other;\n", "using namespace"},
      {"float operator+(T*, T);\n", "operator"}};
  for (const auto& [later, reason] : cases) {
    write("k/t.cu", kDependent + ("KERNEL(a)\n" + later) + "KERNEL(b)\n");
    const Ran ran = run({"split", "k/t.cu"});
    EXPECT_EQ(ran.exit_code, 1) << later;
    EXPECT_TRUE(ran.says(reason + " follows an instance")) << later << ran.err;
    EXPECT_TRUE(ran.says("nothing was written")) << ran.err;
    EXPECT_FALSE(std::filesystem::exists(path("kiln.toml"))) << later;
  }
}

TEST_F(SplitCommand, AcceptsLaterCodeWithNewNames) {
  write("k/t.cu",
        kDependent + std::string("KERNEL(a)\n#ifndef SIZE\n#define SIZE 4\n#endif\n"
                                 "__device__ int g(int y) { return y; }\n"
                                 "#define OTHER(name) __global__ void name(T* x) { *x = SIZE; }\nOTHER(b)\n"));
  EXPECT_EQ(split({"k/t.cu"})["instances"].size(), 2U);
}

TEST_F(SplitCommand, KeepsCallsThatAreNotOneWholeKernel) {
  const std::string body = "(int* p) { *p = 1; }\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"#define K(n) __device__ int f(n x) { return x; } __global__ void k_##n" + body + "K(int)\n", "and other code"},
      {"#define K(n) __global__ void n(int* p)\nK(a) { *p = 1; }\n", "does not define the whole kernel"},
      {"#define K(n) __global__ void n" + body + "extern \"C\" K(a)\n", "after the start of a declaration"},
      {"#define K(n) __global__ void n" + body + "K(\n#ifdef A\na\n#else\nb\n#endif\n)\n", "around a directive"},
      {"#define BEGIN namespace z {\n#define K(n) __global__ void n" + body + "BEGIN\nK(a)\n}\n", "inside braces"},
      {"#define N 1\n#define K(n) __global__ void k_##n" + body + "#define L(n) K(n)\nL(N)\n",
       "an argument of macro L is a macro"},
      {"#define K(n) __global__ void n(int* p) { *p = __COUNTER__; }\nK(a)\n", "__COUNTER__"}};
  for (const auto& [text, reason] : cases) {
    write("k/t.cu", text);
    const Ran ran = run({"split", "k/t.cu"});
    EXPECT_EQ(ran.exit_code, 1) << text << ran.out;
    EXPECT_TRUE(ran.says(reason)) << text << ran.err;
  }
}

TEST_F(SplitCommand, CommentInArgumentHidesNoInstance) {
  write("k/t.cu", "#define K(n) __global__ void n() {}\n#define L(X, s) X(a) s X(b)\nL(K, // none\n)\n// end");
  EXPECT_EQ(split({"k/t.cu"})["instances"].size(), 2U);
  EXPECT_TRUE(read_text(path("k/t.preamble.cu")).ends_with("// end\n")) << "an instance would be part of the comment";
}

TEST_F(SplitCommand, BoundsExpandedText) {
  std::string text;
  for (int i = 0; i < 12; ++i) {
    text += "#define M" + std::to_string(i) + "(x) M" + std::to_string(i + 1) + "(x x x x x x x x x x)\n";
  }
  write("k/t.cu", text + "M0(a)\n");
  const Ran ran = run({"split", "k/t.cu"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_TRUE(ran.says("is too large")) << ran.err;
}

TEST_F(SplitCommand, ReadsUnclosedBracketsInLinearTime) {
  std::string text = "#define M(x) x\n";
  for (int i = 0; i < 200'000; ++i) text += "M( template< ";
  write("k/t.cu", text);
  EXPECT_EQ(run({"split", "k/t.cu"}).exit_code, 1);
}

TEST_F(SplitCommand, FamilyNeedsPreamble) {
  write("k/empty.cu", "");
  write("kiln.toml", "[[family]]\npreamble = \"k/empty.cu\"\n[family.instances]\na = \"\"\nb = \"\"\n");
  const Ran ran = run({"compile", "--manifest", "kiln.toml", "--arch", "sm_80", "-o", "out/"});
  EXPECT_NE(ran.exit_code, 0);
  EXPECT_TRUE(ran.says("k/empty.cu: the preamble of a family is empty")) << ran.err;
}

}  // namespace
}  // namespace kiln::test
