#include "compile/command_compiler.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include "compile/command_template.hpp"
#include "support/eventually.hpp"
#include "support/files.hpp"
#include "support/recipes.hpp"
#include "support/script_compiler.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Whether a process is there and does something; one that has ended and is not waited for does not.
bool runs(pid_t pid) {
  const std::string status = slurp("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = status.rfind(')');
  return name_end != std::string::npos && status.substr(name_end + 2, 1) != "Z";
}

pid_t number_in(const std::string& file) { return std::atoi(slurp(file).c_str()); }

class CommandTest : public ::testing::Test {
 protected:
  Result<Compiled> compile(CommandCompiler& compiler, const Unit& unit) {
    return compiler.compile(recipe_for(compiler, unit, {"sm_80", Form::Ptx}));
  }
  static Unit unit(const ScriptCompiler& script) { return Unit::command("k.cu", "text", script.command()); }
  bool nothing_is_left() const { return std::filesystem::is_empty(folder_.path()); }

  TemporaryDirectory folder_;
  FileDigests digests_{""};
};

TEST_F(CommandTest, ACommandThatFailsGivesWhatItPrintedAsTheLog) {
  const ScriptCompiler script("echo to the one; echo to the other >&2; exit 3");
  CommandCompiler made(script.path(), digests_, {seconds(60), folder_.path()});
  const auto compiled = compile(made, unit(script));
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.error().code, Code::CompileFailed);
  EXPECT_EQ(compiled.error().log, "to the one\nto the other\n");
  EXPECT_NE(compiled.error().message.find("code 3"), std::string::npos) << compiled.error().message;
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(CommandTest, WhatACommandPrintsIsBounded) {
  const ScriptCompiler script("head -c 50000000 /dev/zero; exit 1");
  CommandCompiler made(script.path(), digests_, {seconds(60), folder_.path()});
  const auto compiled = compile(made, unit(script));
  ASSERT_FALSE(compiled.ok());
  EXPECT_GT(compiled.error().log.size(), 1u << 20);
  EXPECT_LE(compiled.error().log.size(), 4u << 20);
}

TEST_F(CommandTest, ACommandThatHangsIsEndedAtItsLimitWithItsChildren) {
  const ScriptCompiler script("sleep 1000 & echo $! > $(dirname $0)/child; sleep 1000");
  CommandCompiler made(script.path(), digests_, {milliseconds(500), folder_.path()});
  const auto start = std::chrono::steady_clock::now();
  const auto compiled = compile(made, unit(script));
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.error().code, Code::TimedOut) << compiled.error().message;
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(20));
  const pid_t child = number_in(script.file("child"));
  ASSERT_GT(child, 0);
  EXPECT_TRUE(eventually([&] { return !runs(child); }));
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(CommandTest, ChildrenThatOutliveTheirCommandAreEndedToo) {
  const ScriptCompiler script("sleep 1000 & echo $! > $(dirname $0)/child; " + ScriptCompiler::writes_ptx());
  CommandCompiler made(script.path(), digests_, {seconds(60), folder_.path()});
  EXPECT_TRUE(compile(made, unit(script)).ok());
  const pid_t child = number_in(script.file("child"));
  ASSERT_GT(child, 0);
  EXPECT_TRUE(eventually([&] { return !runs(child); }));
}

TEST_F(CommandTest, AnInterruptEndsWhatRunsAndLetsNothingBegin) {
  const ScriptCompiler script("sleep 1000 & echo $! > $(dirname $0)/child; sleep 1000");
  CommandCompiler made(script.path(), digests_, {seconds(600), folder_.path()});
  Result<Compiled> compiled = Compiled{};
  std::thread waiting([&] { compiled = compile(made, unit(script)); });
  ASSERT_TRUE(eventually([&] { return number_in(script.file("child")) > 0; }));
  const auto start = std::chrono::steady_clock::now();
  made.interrupt();
  waiting.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(5));
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.error().code, Code::Cancelled);
  EXPECT_TRUE(eventually([&] { return !runs(number_in(script.file("child"))); }));
  EXPECT_EQ(compile(made, unit(script)).error().code, Code::Cancelled);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(CommandTest, ACommandSeesTheListedEnvironmentAndNoOtherDescriptors) {
  setenv("KILN_TEST_SECRET", "x", 1);
  setenv("NVCC_APPEND_FLAGS", "-O1", 1);
  const int leaked = dup2(STDIN_FILENO, 42);  // without close-on-exec, as careless programs do
  const ScriptCompiler script("env | sed s/=.*// | sort | tr '\\n' ' '; ls /proc/$$/fd | tr '\\n' ' '; exit 1");
  CommandCompiler made(script.path(), digests_, {seconds(60), folder_.path()});
  const auto compiled = compile(made, unit(script));
  close(leaked);
  unsetenv("KILN_TEST_SECRET");
  unsetenv("NVCC_APPEND_FLAGS");
  ASSERT_FALSE(compiled.ok());
  const std::string log = compiled.error().log;
  for (const char* unseen : {"KILN_TEST_SECRET", "HOME", "USER"}) EXPECT_EQ(log.find(unseen), std::string::npos) << log;
  for (const char* seen : {"LC_ALL", "NVCC_APPEND_FLAGS", "PATH", "TMPDIR"}) {
    EXPECT_NE(log.find(seen), std::string::npos) << log;
  }
  EXPECT_EQ(log.find(" " + std::to_string(leaked) + " "), std::string::npos) << log;
}

TEST_F(CommandTest, RefusesArgumentsThatMakeItReadWhatKilnDoesNotSee) {
  const ScriptCompiler script("exit 0");
  CommandCompiler made(script.path(), digests_, {seconds(60), folder_.path()});
  for (const char* argument :
       {"@options", "-optf", "--options-file=o", "--options-file", "-I/usr/include", "-isystem=/x", "/usr/lib/a.o",
        "-Xcompiler=-O2,-I/x", "-Xcompiler=@o", "-I..", "-ccbin", "--compiler-bindir=g++", "-include=/a.h", "-run"}) {
    const auto compiled = compile(made, unit(script).option(argument));
    ASSERT_FALSE(compiled.ok()) << argument;
    EXPECT_EQ(compiled.error().code, Code::InvalidArgument) << argument;
    EXPECT_NE(compiled.error().message.find(argument), std::string::npos) << compiled.error().message;
  }
  for (const char* argument : {"-DPATH=/usr", "-O3", "-std=c++17", "-Xptxas=-v,-O3", "--maxrregcount=32"}) {
    EXPECT_TRUE(check_template(unit(script).option(argument)).ok()) << argument;
  }
}

TEST_F(CommandTest, RefusesACommandLineThatLacksWhatItNeedsAndNamesThatAreNoFiles) {
  const ScriptCompiler script("exit 0");
  CommandCompiler made(script.path(), digests_, {seconds(60), folder_.path()});
  const std::string program = script.path();
  const std::vector<std::string> command = script.command();
  for (const Unit& wrong :
       {Unit::command("k.cu", "", {}), Unit::command("k.cu", "", {program, "{source}"}),
        Unit::command("k.cu", "", {program, "{output}"}), Unit::command("k.cu", "", {"nvcc", "{source}", "{output}"}),
        Unit::command("k.cu", "", {program, "{source}", "{output}"}).include_root("/usr/include"),
        Unit::command("k.cu", "", {program, "{source}", "{output}", "x{includes}"}), Unit::command("k", "", command),
        Unit::command("-k.cu", "", command), Unit::command("dir/", "", command),
        Unit::command("k.cu", "", command).header("../h.h", ""),
        Unit::command("k.cu", "", command).header("k.cu", "")}) {
    const auto compiled = compile(made, wrong);
    ASSERT_FALSE(compiled.ok()) << wrong.name();
    EXPECT_EQ(compiled.error().code, Code::InvalidArgument) << compiled.error().message;
  }
}

TEST_F(CommandTest, ReadsWhatTheUnitSaysAndTakesRelativeRootsFromTheWorkingDirectory) {
  const ScriptCompiler script("cat $1 h.h; shift 3; echo \"$@\"; exit 1");
  CommandCompiler made(script.path(), digests_, {seconds(60), folder_.path()});
  const auto compiled = compile(
      made, unit(script).preamble("before ").header("h.h", " header ").include_root("relative").include_root("/r"));
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.error().log,
            "before text header -I. -I" + std::filesystem::current_path().string() + "/relative -I/r\n");
}

TEST_F(CommandTest, IsCacheableWithTheFilesThatItsDependencyFileNames) {
  TemporaryDirectory root;
  spit(root.path("h.h"), "int h;");
  std::this_thread::sleep_for(milliseconds(60));
  const ScriptCompiler script("echo \"o: $1 " + root.path("h.h") + "\" > $3; " + ScriptCompiler::writes_ptx());
  CommandCompiler made(script.path(), digests_, {seconds(60), folder_.path()});
  const auto compiled = compile(made, unit(script).include_root(root.path()).entry("one"));
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;
  EXPECT_EQ(compiled->not_cacheable, "");
  ASSERT_EQ(compiled->artifact.closure->items.size(), 1u);
  EXPECT_EQ(compiled->artifact.closure->items[0].name, "h.h");
  EXPECT_EQ(compiled->artifact.closure->items[0].root, 0);
}

TEST_F(CommandTest, NamesWhatIsBelowARelativeRootByThatRoot) {
  TemporaryDirectory project;
  std::filesystem::create_directory(project.path("inc"));
  spit(project.path("inc/h.h"), "#include \"other.h\"\n");
  std::this_thread::sleep_for(milliseconds(60));
  const ScriptCompiler script("echo \"o: $1 " + project.path("inc/h.h") + "\" > $3; " + ScriptCompiler::writes_ptx());
  CommandCompiler made(script.path(), digests_, {seconds(60), folder_.path()});
  Recipe recipe = recipe_for(made, unit(script).include_root("inc"), {"sm_80", Form::Ptx});
  recipe.working_directory = project.path();
  const auto compiled = made.compile(recipe);
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;
  EXPECT_EQ(compiled->not_cacheable, "");
  const auto& items = compiled->artifact.closure->items;
  ASSERT_EQ(items.size(), 2u);
  EXPECT_TRUE(items[0].root == 0 && items[0].name == "h.h" && items[0].state == Closure::State::Read);
  EXPECT_TRUE(items[1].root == 0 && items[1].name == "other.h" && items[1].state == Closure::State::Absent);
}

TEST_F(CommandTest, IsNotCacheableWhereWhatItReadIsNotKnownOrChanged) {
  TemporaryDirectory root;
  spit(root.path("h.h"), "int h;");
  std::this_thread::sleep_for(milliseconds(60));
  const std::string header = root.path("h.h");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "no dependency file"},
      {"echo words > $3; ", "no rule"},
      {"echo 'o: ../../x.h' > $3; ", "../../x.h"},
      {"echo 'o: " + header + ".gone' > $3; ", "changed while"},
      {"echo 'int i;' > " + header + "; echo 'o: " + header + "' > $3; ", "changed as the compiler started"},
  };
  for (const auto& [lines, reason] : cases) {
    const ScriptCompiler script(lines + ScriptCompiler::writes_ptx());
    CommandCompiler made(script.path(), digests_, {seconds(60), folder_.path()});
    const auto compiled = compile(made, unit(script).include_root(root.path()));
    ASSERT_TRUE(compiled.ok()) << compiled.error().message;
    EXPECT_NE(compiled->not_cacheable.find(reason), std::string::npos) << compiled->not_cacheable;
  }
  const ScriptCompiler script(ScriptCompiler::writes_ptx());
  CommandCompiler made(script.path(), digests_, {seconds(60), folder_.path()});
  const auto compiled = compile(made, Unit::command("k.cu", "", {script.path(), "{source}", "{output}"}));
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;
  EXPECT_NE(compiled->not_cacheable.find("{depfile}"), std::string::npos);
}

TEST_F(CommandTest, AnOutputThatCannotBeReadIsNoFailureOfTheUnit) {
  const ScriptCompiler script("mkdir $2");
  CommandCompiler made(script.path(), digests_, {seconds(60), folder_.path()});
  EXPECT_EQ(compile(made, unit(script)).error().code, Code::Io) << "nothing that is remembered of it";
}

TEST_F(CommandTest, RefusesOutputThatIsNotOfTheForm) {
  const ScriptCompiler script("echo words > $2");
  CommandCompiler made(script.path(), digests_, {seconds(60), folder_.path()});
  for (const Form form : {Form::Cubin, Form::Ptx}) {
    const auto compiled = made.compile(recipe_for(made, unit(script), {"sm_80", form}));
    ASSERT_FALSE(compiled.ok());
    EXPECT_EQ(compiled.error().code, Code::CompileFailed);
  }
}

TEST_F(CommandTest, RemovesWhatKilledProcessesLeftAndNothingElse) {
  const auto make = [&](const char* name, bool old) {
    std::filesystem::create_directories(folder_.path(name) + std::string("/work"));
    const auto age = std::chrono::hours(old ? 1 : 0);
    std::filesystem::last_write_time(folder_.path(name), std::filesystem::file_time_type::clock::now() - age);
  };
  make("kiln-command-dead", true);
  make("kiln-command-young", false);
  make("kiln-command-alive", true);
  make("another", true);
  const int alive = open(folder_.path("kiln-command-alive").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(alive, LOCK_EX), 0);
  const ScriptCompiler script(ScriptCompiler::writes_ptx());
  CommandCompiler made(script.path(), digests_, {seconds(60), folder_.path()});
  EXPECT_TRUE(compile(made, unit(script)).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_.path("kiln-command-dead")));
  for (const char* kept : {"kiln-command-young", "kiln-command-alive", "another"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_.path(kept))) << kept;
  }
  close(alive);
}

TEST_F(CommandTest, AProgramThatIsNotThereIsUnavailable) {
  CommandCompiler made("no-such-compiler", digests_);
  const auto identity = made.identity();
  ASSERT_FALSE(identity.ok());
  EXPECT_EQ(identity.error().code, Code::Unavailable);
  EXPECT_NE(identity.error().message.find("no-such-compiler"), std::string::npos);
}

}  // namespace
}  // namespace kiln::test
