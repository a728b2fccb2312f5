// SPDX-License-Identifier: Apache-2.0
#include "backends/kernel_entries.hpp"

#include <gtest/gtest.h>

namespace kiln {
namespace {

using Strings = std::vector<std::string>;

TEST(KernelNames, AreThoseOfDeclaredKernels) {
  EXPECT_EQ(kernel_names("extern \"C\" __global__ void scale(float* x) { x[0] *= 2; }\n"
                         "template <class T, int N = (1 > 0)>\n__global__ __launch_bounds__(128, 2) void add(T* x) {}\n"
                         "static __global__ void\nlast ( int x );\n"
                         "void host() { scale<<<1, 1>>>(nullptr); }\n"),
            (Strings{"scale", "add<…>", "last"}));
  EXPECT_EQ(kernel_names("template __global__ void add<float>(float*);\n__global__ void add<int>(int*) {}"),
            (Strings{"add<…>", "add"}));
  EXPECT_EQ(kernel_names("__global__ void twice(int);\n__global__ void twice(int) {}"), Strings{"twice"});
}

TEST(FirstErrorLine, IsFirstErrorOfTheLog) {
  EXPECT_EQ(
      first_error_line("k.cu(1): warning #1-D: unused\n\nk.cu(2): error: namespace \"n\" has no member \"x\"\n  n::x\n"
                       "k.cu(3): error: two\n2 errors detected in the compilation of \"k.cu\".\n"),
      "k.cu(2): error: namespace \"n\" has no member \"x\"");
  EXPECT_EQ(first_error_line("k.cu(1): catastrophic error: cannot open source file \"a.h\"\n"),
            "k.cu(1): catastrophic error: cannot open source file \"a.h\"");
  EXPECT_EQ(first_error_line("k.cu(2): error #20: identifier \"x\" is undefined"),
            "k.cu(2): error #20: identifier \"x\" is undefined");
  EXPECT_EQ(first_error_line("error: k.cl:1:43: use of undeclared identifier 'y'\nDevice d failed"),
            "error: k.cl:1:43: use of undeclared identifier 'y'");
  EXPECT_EQ(first_error_line("Invalid build option: --nope\n1 error detected in the compilation of \"k.cu\".\n"), "");
  EXPECT_LE(first_error_line("error: " + std::string(5000, 'x')).size(), 300U);
}

TEST(KernelNames, IgnoreCommentsTextsAndDirectives) {
  EXPECT_EQ(kernel_names("// __global__ void a();\n/* __global__ void b(); */\n"
                         "const char* s = \"__global__ void c();\\\"\";\n"
                         "#define K(name) \\\n  __global__ void name()\n__global__ void d() {}"),
            Strings{"d"});
  EXPECT_EQ(kernel_names(""), Strings{});
  for (const char* text : {"__global__", "__global__ void", "__global__ void k", "__global__ f<", "__global__ __x__(",
                           "/*", "\"", "'\\", "#", "template"}) {
    EXPECT_EQ(kernel_names(text), Strings{}) << text;
  }
}

// The log of NVRTC 13.0 for the entry `scael`.
constexpr const char* kLog =
    "__nv_name_map(2): error: identifier \"scael\" is undefined\n  #pragma nv_mangled_name scael\n"
    "                          ^\n\n"
    "__nv_name_map(2): error: Error in parsing name expression for lowered name lookup. Input name expression was: "
    "\" scael\"\n  #pragma nv_mangled_name scael\n                          ^\n\n"
    "2 errors detected in the compilation of \"k.cu\".\n";

TEST(UnknownEntries, AreFoundInTheLogOfTheCompiler) {
  const auto unknown = find_unknown_entry(kLog);
  ASSERT_TRUE(unknown.has_value());
  EXPECT_EQ(unknown->entry, "scael");
  EXPECT_EQ(unknown->reason, "identifier \"scael\" is undefined");
  EXPECT_EQ(unknown->log, "");
  const auto warned =
      find_unknown_entry("k.cu(3): warning #177-D: variable \"x\" was declared\n\n" + std::string(kLog));
  ASSERT_TRUE(warned.has_value());
  EXPECT_EQ(warned->log, "k.cu(3): warning #177-D: variable \"x\" was declared\n\n");
  EXPECT_FALSE(find_unknown_entry("k.cu(1): error: expected a \";\"\n\n" + std::string(kLog)).has_value())
      << "the error of the source is the cause";
  EXPECT_FALSE(find_unknown_entry("c.cu(1): catastrophic error: could not open source file \"a.h\"\n").has_value());
  EXPECT_FALSE(find_unknown_entry("").has_value());
}

TEST(UnknownEntries, ErrorListsTheKernelsOfTheSource) {
  const UnknownEntry unknown{"scael", "identifier \"scael\" is undefined", ""};
  const Unit unit = Unit::cuda("k.cu", "extern \"C\" __global__ void scale(float*) {}\n").with_entry("scael");
  EXPECT_EQ(unknown_entry_error(unit, unknown).message,
            "unit 'k.cu' has no kernel 'scael': identifier \"scael\" is undefined; its source has scale");
  std::string many;
  for (int i = 0; i < 25; ++i) many += "__global__ void k" + std::to_string(i) + "();\n";
  const std::string message = unknown_entry_error(Unit::cuda("m.cu", many), unknown).message;
  EXPECT_TRUE(message.ends_with("k18, k19 and 5 more")) << message;
  EXPECT_NE(unknown_entry_error(Unit::cuda("n.cu", "#include <kernels.cuh>\n"), unknown).message.find("full name"),
            std::string::npos);
}

}  // namespace
}  // namespace kiln
