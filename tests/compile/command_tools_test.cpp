#include "compile/command_tools.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "compile/include_names.hpp"
#include "support/files.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

using Texts = std::vector<std::string>;

TEST(IncludeNames, FindsEveryWayOfNamingAHeader) {
  const IncludeNames found = include_names(
      "#include <a.h>\n # include \"b c.h\"\n#include_next <d.h>\n#if __has_include ( <e.h> )\n#endif\n"
      "#include /* why */ <f.h>\n#include \\\n <g.h>\n// includes nothing\n#include <unfinished\n#import \"h.h\"\n");
  Texts names;
  for (const auto& name : found.names) names.push_back((name.quoted ? "\"" : "<") + name.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (Texts{"\"b c.h", "\"h.h", "<a.h", "<d.h", "<e.h", "<f.h", "<g.h"}));
  EXPECT_FALSE(found.computed);
}

TEST(IncludeNames, SaysWhereAMacroMakesTheName) {
  EXPECT_TRUE(include_names("#define M <a.h>\n# include M\n").computed);
  EXPECT_FALSE(include_names("int include = 1;").computed);
}

TEST(CommandTools, ReadsTheSearchListOfGcc) {
  EXPECT_EQ(folders_of_search_list("Using built-in specs.\nignoring nonexistent directory \"/usr/local/include/x\"\n"
                                   "#include \"...\" search starts here:\n /quoted\n#include <...> search starts "
                                   "here:\n /usr/include/c++/12\n /usr/include\nEnd of search list.\n not this\n"),
            (Texts{"/usr/local/include/x", "/quoted", "/usr/include/c++/12", "/usr/include"}));
}

TEST(CommandTools, ReadsTheIncludesOfADryRun) {
  EXPECT_EQ(includes_of_dryrun("#$ TOP=\"/x\"\n#$ INCLUDES=\"-I/a b/include\"  \n#$ SYSTEM_INCLUDES=\"-isystem\" "
                               "\"/c/cccl\"  \n#$ gcc \"-I/d\"\n"),
            (Texts{"-I/a b/include", "-isystem", "/c/cccl"}));
}

TEST(CommandTools, FindsProgramsByAbsolutePathsAlone) {
  EXPECT_EQ(find_program("sh", "relative::/nowhere:/bin"), "/bin/sh");
  EXPECT_EQ(find_program("/bin/sh", ""), "/bin/sh");
  EXPECT_EQ(find_program("bin/sh", "/"), "");
  EXPECT_EQ(find_program("no-such-program", "/bin"), "");
}

// A folder laid out as a toolkit is, so that its parts can be changed.
class ToolkitTest : public ::testing::Test {
 protected:
  ToolkitTest() {
    for (const char* name : {"bin", "include", "nvvm/bin", "nvvm/libdevice"}) {
      std::filesystem::create_directories(folder_.path(name));
    }
    for (const char* name : {"bin/nvcc", "bin/ptxas", "bin/nvcc.profile", "nvvm/bin/cicc", "nvvm/libdevice/d.bc"}) {
      spit(folder_.path(name), name);
    }
    spit(folder_.path("include/cuda_runtime_api.h"), "#define CUDART_VERSION  13020\n");
    chmod(folder_.path("bin/nvcc").c_str(), 0700);
  }
  Result<CompilerIdentity> identity() { return CommandTools(folder_.path("bin/nvcc"), digests_, runner_).identity(); }

  TemporaryDirectory folder_;
  FileDigests digests_{""};
  CommandRunner runner_;
};

TEST_F(ToolkitTest, TheIdentityOfNvccChangesWithEachOfItsParts) {
  const auto first = identity();
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first->name, "nvcc");
  EXPECT_EQ(first->version, "13.2");
  Digest last = first->digest;
  for (const char* name : {"bin/nvcc", "bin/ptxas", "bin/nvcc.profile", "nvvm/bin/cicc", "nvvm/libdevice/d.bc"}) {
    spit(folder_.path(name), "another");
    EXPECT_NE(identity()->digest, last) << name;
    last = identity()->digest;
  }
  EXPECT_EQ(identity()->digest, last);
}

TEST_F(ToolkitTest, TheHostCompilerThatNvccCallsIsPartOfItsIdentity) {
  const Digest with_gcc = identity()->digest;
  spit(folder_.path("my-gcc"), "#!/bin/sh\necho cc1plus\n");
  chmod(folder_.path("my-gcc").c_str(), 0700);
  setenv("NVCC_CCBIN", folder_.path("my-gcc").c_str(), 1);
  const auto with_mine = identity();
  unsetenv("NVCC_CCBIN");
  ASSERT_TRUE(with_mine.ok()) << with_mine.error().message;
  EXPECT_NE(with_mine->digest, with_gcc);
  ASSERT_EQ(with_mine->environment.size(), 1u);
  EXPECT_EQ(with_mine->environment[0].first, "NVCC_CCBIN");
}

TEST_F(ToolkitTest, AWrapperThatIsNoToolkitIsRefusedWithWhatToDo) {
  std::filesystem::remove(folder_.path("bin/ptxas"));
  const auto refused = identity();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::Unavailable);
  EXPECT_NE(refused.error().message.find("absolute path"), std::string::npos);
}

}  // namespace
}  // namespace kiln::test
