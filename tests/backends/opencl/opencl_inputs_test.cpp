// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/opencl_inputs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace kiln::test {
namespace {

Unit unit_of(std::string source) { return Unit::opencl("u.cl", std::move(source)); }

TEST(OpenClInputs, AreTrackedWithOnlyInMemoryHeaders) {
  const Unit plain =
      unit_of("__kernel void k() {}").with_header("a.h", "#include \"sub/b.h\"\n").with_header("sub/b.h", "");
  for (const char* text : {
           "",
           "// #include \"x.h\"\nint a;",
           "/* we\n#include <x.h>\n*/",
           "char* s = \"#include\";",
           "#include \"a.h\"\n",
           "  #  include /* c */ <a.h>",
           "#if __has_include(\"a.h\")\n#endif",
           "#error don't include /* \n",
           "int including; // __has_include(\"x.h\")",
           "a = b # include;",
           "#define s \"\\\"\\\n#include <x.h>\"",
           "'\"' /* #include <x> */",
           "%:include \"a.h\"",
       }) {
    EXPECT_EQ(opencl_untracked_inputs(plain.instance("k", text)), "") << text;
  }
  EXPECT_EQ(opencl_untracked_inputs(plain.with_header("sub/c.h", "#include \"b.h\"")), "");
}

TEST(OpenClInputs, AreUntrackedIfTextCanIncludeFile) {
  const Unit plain = unit_of("").with_header("a.h", "");
  for (const char* text : {
           "#include \"x.h\"",
           "#include <x.h>",
           "\n\t# \tinclude\"x.h\"",
           "#inc\\\nlude \"x.h\"",
           "#include \\  \n \"x.h\"",
           "# /* a */ include /* b */ \"x.h\"",
           "%:include \"x.h\"",
           "#include NAME",
           "#import \"a.h\"",
           "#include_next \"a.h\"",
           "#include \"a.h\"\n#include \"x.h\"",
           "#include \"a.h/x.h\"",
           "#if __has_include(\"x.h\")",
           "#if __has_include ( <x.h> )",
           "#define H __has_include",
           "\?\?=include \"x.h\"",
           "/* // */ \n#include \"x.h\"",
           "'\n#include \"x.h\"",
           "\"\n#include \"x.h\"",
           "// a\n#include \"x.h\"",
           "int a;\n/**/#include \"x.h\"",
           "'\\''\n#include \"x.h\"",
       }) {
    EXPECT_NE(opencl_untracked_inputs(plain.instance("k", text)), "") << text;
  }
  EXPECT_NE(opencl_untracked_inputs(plain.with_header("sub/c.h", "#include \"b.h\"")), "");
  EXPECT_NE(opencl_untracked_inputs(unit_of("").with_preamble("#include \"x.h\"\n")), "");
}

TEST(OpenClInputs, AreUntrackedWithTimeMacros) {
  for (const char* macro : {"__TIME__", "__DATE__", "__TIMESTAMP__"}) {
    EXPECT_NE(opencl_untracked_inputs(unit_of(std::string("constant char* t = ") + macro + ";")).find(macro),
              std::string::npos);
    EXPECT_NE(opencl_untracked_inputs(unit_of("").with_header("h", macro)), "");
    EXPECT_NE(opencl_untracked_inputs(unit_of("").with_option(std::string("-DT=") + macro)), "");
  }
}

TEST(OpenClInputs, RejectOptionsThatNameFiles) {
  EXPECT_TRUE(check_opencl_inputs(unit_of("").with_options({"-DI=1", "-cl-std=CL3.0", "-w"})).has_value());
  for (const char* option : {"-I.", "-I", "-DA=1 -I/x", "-DA=1 \"-I/x\"", "-include x.h", "-isystem /x", "@file"}) {
    const Status status = check_opencl_inputs(unit_of("").with_option(option));
    ASSERT_FALSE(status.has_value()) << option;
    EXPECT_EQ(status.error().code, Code::Unsupported);
  }
  EXPECT_EQ(check_opencl_inputs(unit_of("").with_include_root("/x")).error().code, Code::Unsupported);
  for (const char* name : {"", "/a.h", "../a.h", "a/../../b.h"}) {
    EXPECT_EQ(check_opencl_inputs(unit_of("").with_header(name, "")).error().code, Code::InvalidArgument) << name;
  }
}

TEST(OpenClInputs, IncludeVariablesThatChangePoclOutput) {
  const auto before = opencl_environment();
  setenv("POCL_WORK_GROUP_METHOD", "loopvec", 1);
  setenv("POCL_AFFINITY", "0", 1);
  setenv("POCL_OF_TOMORROW", "", 1);
  auto with = opencl_environment();
  EXPECT_EQ(with.size(), before.size() + 2);
  EXPECT_NE(std::find(with.begin(), with.end(), std::pair<std::string, std::string>("POCL_OF_TOMORROW", "")),
            with.end());
  EXPECT_EQ(opencl_untracked_inputs(unit_of("")), "");
  setenv("POCL_EXTRA_BUILD_FLAGS", "-DX -I/somewhere", 1);
  EXPECT_NE(opencl_untracked_inputs(unit_of("")), "");
  for (const char* name : {"POCL_WORK_GROUP_METHOD", "POCL_AFFINITY", "POCL_OF_TOMORROW", "POCL_EXTRA_BUILD_FLAGS"}) {
    unsetenv(name);
  }
}

TEST(OpenClInputs, PassOnlySupportedOptionsToLinker) {
  EXPECT_EQ(opencl_link_options({"-DA=1 -cl-fast-relaxed-math", "-w", "-cl-finite-math-only"}),
            "-cl-fast-relaxed-math -cl-finite-math-only");
}

}  // namespace
}  // namespace kiln::test
