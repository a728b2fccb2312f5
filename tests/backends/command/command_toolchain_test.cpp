// SPDX-License-Identifier: Apache-2.0
#include "backends/command/command_toolchain.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "backends/command/include_scan.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

using Texts = std::vector<std::string>;

TEST(IncludeScan, FindsAllFormsOfIncludes) {
  const IncludeScan found = scan_includes(
      "#include <a.h>\n # include \"b c.h\"\n#include_next <d.h>\n#if __has_include ( <e.h> )\n#endif\n"
      "#include /* why */ <f.h>\n#include \\\n <g.h>\n// includes nothing\n#include <unfinished\n#import \"h.h\"\n");
  Texts names;
  for (const auto& name : found.names) names.push_back((name.quoted ? "\"" : "<") + name.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (Texts{"\"b c.h", "\"h.h", "<a.h", "<d.h", "<e.h", "<f.h", "<g.h"}));
  EXPECT_FALSE(found.computed);
}

TEST(IncludeScan, ReportsIncludesNamedByMacros) {
  EXPECT_TRUE(scan_includes("#define M <a.h>\n# include M\n").computed);
  EXPECT_FALSE(scan_includes("int include = 1;").computed);
}

TEST(CommandToolchain, ReadsTheSearchListOfGcc) {
  EXPECT_EQ(
      directories_of_search_list("Using built-in specs.\nignoring nonexistent directory \"/usr/local/include/x\"\n"
                                 "#include \"...\" search starts here:\n /quoted\n#include <...> search starts "
                                 "here:\n /usr/include/c++/12\n /usr/include\nEnd of search list.\n not this\n"),
      (Texts{"/usr/local/include/x", "/quoted", "/usr/include/c++/12", "/usr/include"}));
}

TEST(CommandToolchain, ReadsTheIncludesOfADryRun) {
  EXPECT_EQ(includes_of_dryrun("#$ TOP=\"/x\"\n#$ INCLUDES=\"-I/a b/include\"  \n#$ SYSTEM_INCLUDES=\"-isystem\" "
                               "\"/c/cccl\"  \n#$ gcc \"-I/d\"\n"),
            (Texts{"-I/a b/include", "-isystem", "/c/cccl"}));
}

TEST(CommandToolchain, FindsProgramsOnlyInAbsoluteDirectories) {
  EXPECT_EQ(find_program("sh", "relative::/nowhere:/bin"), "/bin/sh");
  EXPECT_EQ(find_program("/bin/sh", ""), "/bin/sh");
  EXPECT_EQ(find_program("bin/sh", "/"), "");
  EXPECT_EQ(find_program("no-such-program", "/bin"), "");
}

// A directory with the layout of a toolkit, whose files the tests change.
class ToolkitTest : public ::testing::Test {
 protected:
  ToolkitTest() {
    for (const char* name : {"bin", "include", "nvvm/bin", "nvvm/libdevice"}) {
      std::filesystem::create_directories(directory_.path(name));
    }
    for (const char* name : {"bin/nvcc", "bin/ptxas", "bin/nvcc.profile", "nvvm/bin/cicc", "nvvm/libdevice/d.bc"}) {
      write_text(directory_.path(name), name);
    }
    write_text(directory_.path("include/cuda_runtime_api.h"), "#define CUDART_VERSION  13020\n");
    chmod(directory_.path("bin/nvcc").c_str(), 0700);
  }
  Result<CompilerIdentity> identity() {
    return CommandToolchain(directory_.path("bin/nvcc"), digests_, runner_).identity({});
  }

  TemporaryDirectory directory_;
  FileDigestCache digests_{""};
  CommandRunner runner_;
};

TEST_F(ToolkitTest, IdentityDependsOnEachComponent) {
  const auto first = identity();
  ASSERT_TRUE(first.has_value()) << first.error().message;
  EXPECT_EQ(first->name, "nvcc");
  EXPECT_EQ(first->version, "13.2");
  Digest last = first->digest;
  for (const char* name : {"bin/nvcc", "bin/ptxas", "bin/nvcc.profile", "nvvm/bin/cicc", "nvvm/libdevice/d.bc"}) {
    write_text(directory_.path(name), "another");
    EXPECT_NE(identity()->digest, last) << name;
    last = identity()->digest;
  }
  EXPECT_EQ(identity()->digest, last);
}

TEST_F(ToolkitTest, IdentityIncludesHostCompiler) {
  const Digest with_gcc = identity()->digest;
  write_text(directory_.path("my-gcc"), "#!/bin/sh\necho cc1plus\n");
  chmod(directory_.path("my-gcc").c_str(), 0700);
  setenv("NVCC_CCBIN", directory_.path("my-gcc").c_str(), 1);
  const auto with_mine = identity();
  unsetenv("NVCC_CCBIN");
  ASSERT_TRUE(with_mine.has_value()) << with_mine.error().message;
  EXPECT_NE(with_mine->digest, with_gcc);
  ASSERT_EQ(with_mine->environment.size(), 1u);
  EXPECT_EQ(with_mine->environment[0].first, "NVCC_CCBIN");
}

TEST_F(ToolkitTest, RejectsWrapperWithoutToolkit) {
  std::filesystem::remove(directory_.path("bin/ptxas"));
  const auto rejected = identity();
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().code, Code::Unavailable);
  EXPECT_NE(rejected.error().message.find("absolute path"), std::string::npos);
}

}  // namespace
}  // namespace kiln::test
