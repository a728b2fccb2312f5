// SPDX-License-Identifier: Apache-2.0
#include "backends/command/command_compiler.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include "backends/command/command_dependencies.hpp"
#include "backends/command/command_template.hpp"
#include "support/fakes/script_compiler.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/eventually.hpp"

namespace kiln::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Returns true if a process exists and is not a zombie.
bool runs(pid_t pid) {
  const std::string status = read_text("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = status.rfind(')');
  return name_end != std::string::npos && status.substr(name_end + 2, 1) != "Z";
}

pid_t number_in(const std::string& file) { return std::atoi(read_text(file).c_str()); }

class CommandTest : public ::testing::Test {
 protected:
  Result<CompileResult> compile(CommandCompiler& compiler, const Unit& unit) {
    return compiler.compile(recipe_for(compiler, unit, {"sm_80", Form::Ptx}), {});
  }
  static Unit unit(const ScriptCompiler& script) { return Unit::command("k.cu", "text", script.command()); }
  bool nothing_is_left() const { return std::filesystem::is_empty(directory_.path()); }

  TemporaryDirectory directory_;
  FileDigestCache digests_{""};
};

TEST_F(CommandTest, OutputOfFailedCommandIsTheLog) {
  const ScriptCompiler script("echo to the one; echo to the other >&2; exit 3");
  CommandCompiler made(script.path(), digests_, {seconds(60), directory_.path()});
  const auto compiled = compile(made, unit(script));
  ASSERT_FALSE(compiled.has_value());
  EXPECT_EQ(compiled.error().code, Code::CompileFailed);
  EXPECT_EQ(compiled.error().log, "to the one\nto the other\n");
  EXPECT_NE(compiled.error().message.find("code 3"), std::string::npos) << compiled.error().message;
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(CommandTest, CapturedOutputIsLimited) {
  const ScriptCompiler script("head -c 50000000 /dev/zero; exit 1");
  CommandCompiler made(script.path(), digests_, {seconds(60), directory_.path()});
  const auto compiled = compile(made, unit(script));
  ASSERT_FALSE(compiled.has_value());
  EXPECT_GT(compiled.error().log.size(), 1u << 20);
  EXPECT_LE(compiled.error().log.size(), 4u << 20);
}

TEST_F(CommandTest, HangingCommandIsKilledWithItsChildrenAtTimeout) {
  const ScriptCompiler script("sleep 1000 & echo $! > $(dirname $0)/child; sleep 1000");
  CommandCompiler made(script.path(), digests_,
                       {seconds(4), directory_.path()});  // the script must have started by then
  const auto start = std::chrono::steady_clock::now();
  const auto compiled = compile(made, unit(script));
  ASSERT_FALSE(compiled.has_value());
  EXPECT_EQ(compiled.error().code, Code::TimedOut) << compiled.error().message;
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(20));
  const pid_t child = number_in(script.file("child"));
  ASSERT_GT(child, 0);
  EXPECT_TRUE(eventually([&] { return !runs(child); }));
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(CommandTest, ChildrenThatOutliveTheirCommandAreKilled) {
  const ScriptCompiler script("sleep 1000 & echo $! > $(dirname $0)/child; " + ScriptCompiler::writes_ptx());
  CommandCompiler made(script.path(), digests_, {seconds(60), directory_.path()});
  EXPECT_TRUE(compile(made, unit(script)).has_value());
  const pid_t child = number_in(script.file("child"));
  ASSERT_GT(child, 0);
  EXPECT_TRUE(eventually([&] { return !runs(child); }));
}

TEST_F(CommandTest, InterruptKillsRunningCommandsAndPreventsNewOnes) {
  const ScriptCompiler script("sleep 1000 & echo $! > $(dirname $0)/child; sleep 1000");
  CommandCompiler made(script.path(), digests_, {seconds(600), directory_.path()});
  Result<CompileResult> compiled = CompileResult{};
  std::thread waiting([&] { compiled = compile(made, unit(script)); });
  ASSERT_TRUE(eventually([&] { return number_in(script.file("child")) > 0; }));
  const auto start = std::chrono::steady_clock::now();
  made.interrupt();
  waiting.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(30));
  ASSERT_FALSE(compiled.has_value());
  EXPECT_EQ(compiled.error().code, Code::Cancelled);
  EXPECT_TRUE(eventually([&] { return !runs(number_in(script.file("child"))); }));
  EXPECT_EQ(compile(made, unit(script)).error().code, Code::Cancelled);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(CommandTest, CommandGetsOnlyListedEnvironmentAndDescriptors) {
  setenv("KILN_TEST_SECRET", "x", 1);
  setenv("NVCC_APPEND_FLAGS", "-O1", 1);
  const int leaked = dup2(STDIN_FILENO, 42);  // without close-on-exec, as in some programs
  const ScriptCompiler script("env | sed s/=.*// | sort | tr '\\n' ' '; ls /proc/$$/fd | tr '\\n' ' '; exit 1");
  CommandCompiler made(script.path(), digests_, {seconds(60), directory_.path()});
  const auto compiled = compile(made, unit(script));
  close(leaked);
  unsetenv("KILN_TEST_SECRET");
  unsetenv("NVCC_APPEND_FLAGS");
  ASSERT_FALSE(compiled.has_value());
  const std::string log = compiled.error().log;
  for (const char* unseen : {"KILN_TEST_SECRET", "HOME", "USER"}) EXPECT_EQ(log.find(unseen), std::string::npos) << log;
  for (const char* seen : {"LC_ALL", "NVCC_APPEND_FLAGS", "PATH", "TMPDIR"}) {
    EXPECT_NE(log.find(seen), std::string::npos) << log;
  }
  EXPECT_EQ(log.find(" " + std::to_string(leaked) + " "), std::string::npos) << log;
}

TEST_F(CommandTest, RejectsArgumentsWithUntrackedInputs) {
  const ScriptCompiler script("exit 0");
  CommandCompiler made(script.path(), digests_, {seconds(60), directory_.path()});
  for (const char* argument :
       {"@options", "-optf", "--options-file=o", "--options-file", "-I/usr/include", "-isystem=/x", "/usr/lib/a.o",
        "-Xcompiler=-O2,-I/x", "-Xcompiler=@o", "-I..", "-ccbin", "--compiler-bindir=g++", "-include=/a.h", "-run"}) {
    const auto compiled = compile(made, unit(script).with_option(argument));
    ASSERT_FALSE(compiled.has_value()) << argument;
    EXPECT_EQ(compiled.error().code, Code::InvalidArgument) << argument;
    EXPECT_NE(compiled.error().message.find(argument), std::string::npos) << compiled.error().message;
  }
  for (const char* argument : {"-DPATH=/usr", "-O3", "-std=c++17", "-Xptxas=-v,-O3", "--maxrregcount=32"}) {
    EXPECT_TRUE(check_template(unit(script).with_option(argument)).has_value()) << argument;
  }
}

TEST_F(CommandTest, RejectsIncompleteCommandLinesAndInvalidFileNames) {
  const ScriptCompiler script("exit 0");
  CommandCompiler made(script.path(), digests_, {seconds(60), directory_.path()});
  const std::string program = script.path();
  const std::vector<std::string> command = script.command();
  for (const Unit& wrong :
       {Unit::command("k.cu", "", {}), Unit::command("k.cu", "", {program, "{source}"}),
        Unit::command("k.cu", "", {program, "{output}"}), Unit::command("k.cu", "", {"nvcc", "{source}", "{output}"}),
        Unit::command("k.cu", "", {program, "{source}", "{output}"}).with_include_root("/usr/include"),
        Unit::command("k.cu", "", {program, "{source}", "{output}", "x{includes}"}), Unit::command("k", "", command),
        Unit::command("-k.cu", "", command), Unit::command("dir/", "", command),
        Unit::command("k.cu", "", command).with_header("../h.h", ""),
        Unit::command("k.cu", "", command).with_header("k.cu", "")}) {
    const auto compiled = compile(made, wrong);
    ASSERT_FALSE(compiled.has_value()) << wrong.name();
    EXPECT_EQ(compiled.error().code, Code::InvalidArgument) << compiled.error().message;
  }
}

TEST_F(CommandTest, PassesUnitTextAndResolvesRelativeRoots) {
  const ScriptCompiler script("cat $1 h.h; shift 3; echo \"$@\"; exit 1");
  CommandCompiler made(script.path(), digests_, {seconds(60), directory_.path()});
  const auto compiled = compile(made, unit(script)
                                          .with_preamble("before ")
                                          .with_header("h.h", " header ")
                                          .with_include_root("relative")
                                          .with_include_root("/r"));
  ASSERT_FALSE(compiled.has_value());
  EXPECT_EQ(compiled.error().log,
            "before text header -I. -I" + std::filesystem::current_path().string() + "/relative -I/r\n");
}

TEST_F(CommandTest, IsCacheableWithDependencyFile) {
  TemporaryDirectory root;
  write_text(root.path("h.h"), "int h;");
  std::this_thread::sleep_for(milliseconds(60));
  const ScriptCompiler script("echo \"o: $1 " + root.path("h.h") + "\" > $3; " + ScriptCompiler::writes_ptx());
  CommandCompiler made(script.path(), digests_, {seconds(60), directory_.path()});
  const auto compiled = compile(made, unit(script).with_include_root(root.path()).with_entry("one"));
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
  EXPECT_EQ(compiled->uncacheable_reason, "");
  ASSERT_EQ(compiled->artifact.dependency_set->items.size(), 1u);
  EXPECT_EQ(compiled->artifact.dependency_set->items[0].name, "h.h");
  EXPECT_EQ(compiled->artifact.dependency_set->items[0].root, 0);
}

TEST_F(CommandTest, NamesFilesBelowRelativeRootByThatRoot) {
  TemporaryDirectory project;
  std::filesystem::create_directory(project.path("inc"));
  write_text(project.path("inc/h.h"), "#include \"other.h\"\n");
  std::this_thread::sleep_for(milliseconds(60));
  const ScriptCompiler script("echo \"o: $1 " + project.path("inc/h.h") + "\" > $3; " + ScriptCompiler::writes_ptx());
  CommandCompiler made(script.path(), digests_, {seconds(60), directory_.path()});
  Recipe recipe = recipe_for(made, unit(script).with_include_root("inc"), {"sm_80", Form::Ptx});
  recipe.working_directory = project.path();
  const auto compiled = made.compile(recipe, {});
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
  EXPECT_EQ(compiled->uncacheable_reason, "");
  const auto& items = compiled->artifact.dependency_set->items;
  ASSERT_EQ(items.size(), 2u);
  EXPECT_TRUE(items[0].root == 0 && items[0].name == "h.h" && items[0].state == DependencySet::State::Read);
  EXPECT_TRUE(items[1].root == 0 && items[1].name == "other.h" && items[1].state == DependencySet::State::Absent);
}

TEST_F(CommandTest, UnknownOrChangedInputsAreNotCacheable) {
  TemporaryDirectory root;
  write_text(root.path("h.h"), "int h;");
  std::this_thread::sleep_for(milliseconds(60));
  const std::string header = root.path("h.h");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "no dependency file"},
      {"echo words > $3; ", "not a rule"},
      {"echo 'o: ../../x.h' > $3; ", "../../x.h"},
      {"echo 'o: " + header + ".gone' > $3; ", "changed while"},
      {"sleep 0.1; echo 'int i;' > " + header + "; echo 'o: " + header + "' > $3; ", "changed while the compiler ran"},
  };
  for (const auto& [lines, reason] : cases) {
    const ScriptCompiler script(lines + ScriptCompiler::writes_ptx());
    CommandCompiler made(script.path(), digests_, {seconds(60), directory_.path()});
    const auto compiled = compile(made, unit(script).with_include_root(root.path()));
    ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
    EXPECT_NE(compiled->uncacheable_reason.find(reason), std::string::npos) << compiled->uncacheable_reason;
  }
  const ScriptCompiler script(ScriptCompiler::writes_ptx());
  CommandCompiler made(script.path(), digests_, {seconds(60), directory_.path()});
  const auto compiled = compile(made, Unit::command("k.cu", "", {script.path(), "{source}", "{output}"}));
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
  EXPECT_NE(compiled->uncacheable_reason.find("{depfile}"), std::string::npos);
}

TEST_F(CommandTest, ChangedLinkDuringCompileIsNotCacheable) {
  TemporaryDirectory root;
  write_text(root.path("one.h"), "int a;");
  write_text(root.path("two.h"), "int b;");
  std::filesystem::create_symlink("one.h", root.path("h.h"));
  std::this_thread::sleep_for(milliseconds(60));
  const ScriptCompiler script("sleep 0.1; ln -sf two.h " + root.path("h.h") + "; echo \"o: $1 " + root.path("h.h") +
                              "\" > $3; " + ScriptCompiler::writes_ptx());
  CommandCompiler made(script.path(), digests_, {seconds(60), directory_.path()});
  const Unit linked = Unit::command("k.cu", "#include \"h.h\"\n", script.command()).with_include_root(root.path());
  const auto compiled = compile(made, linked);
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
  EXPECT_EQ(compiled->uncacheable_reason, root.path("h.h") + " changed while the compiler ran");
  EXPECT_EQ(compile(made, linked)->uncacheable_reason, "") << "the link stays as it is now";
}

TEST(CommandClosure, FileTimesProveContentOlderThanClockStep) {
  const std::int64_t second = 1'000'000'000;
  const std::int64_t started = 1000 * second + second / 2;
  const auto reason = [&](std::int64_t modified, std::int64_t changed) {
    return unsettled_reason({1, 2, 3, modified, changed}, std::chrono::nanoseconds(started));
  };
  const std::int64_t fine = started - 30'000'000;
  EXPECT_EQ(reason(fine, fine), "");
  EXPECT_NE(reason(fine, started - 10'000'000), "") << "the file could have changed again within one step";
  EXPECT_NE(reason(started - 10'000'000, fine), "");
  EXPECT_EQ(reason(fine, started + 1), "changed while the compiler ran");
  EXPECT_NE(reason(1000 * second, 1000 * second), "") << "times of whole seconds have a longer step";
  EXPECT_NE(reason(999 * second, 999 * second), "");
  EXPECT_EQ(reason(998 * second, 998 * second), "");
}

TEST(CommandClosure, NetworkFilesMustBeReadBeforeTheRun) {
  TemporaryDirectory root;
  write_text(root.path("h.h"), "#include \"deep.h\"\n");
  write_text(root.path("deep.h"), "int d;");
  std::this_thread::sleep_for(milliseconds(60));
  const Unit unit = Unit::command("k.cu", "#include <h.h>\n", {"cc"}).with_include_root(root.path());
  const Recipe recipe{unit, {"sm_80", Form::Ptx}, {}, "/"};
  const IsOnNetwork always = [](const std::string&) { return true; };
  const auto problem = [&](const BeforeRun& before) {
    const auto seen = infer_file_accesses(recipe, {root.path("h.h"), root.path("deep.h")}, {}, before, always);
    return seen ? (*seen)[1].content.problem : seen.error().message;
  };
  EXPECT_NE(problem({}).find("was not read before"), std::string::npos);
  const BeforeRun before = look_before_run(recipe, {}, always);
  EXPECT_EQ(problem(before), "");
  write_text(root.path("deep.h"), "int e;");
  EXPECT_EQ(problem(before), "changed while the compiler ran");
}

TEST_F(CommandTest, UnreadableOutputIsNotACompileFailure) {
  const ScriptCompiler script("mkdir $2");
  CommandCompiler made(script.path(), digests_, {seconds(60), directory_.path()});
  EXPECT_EQ(compile(made, unit(script)).error().code, Code::Io) << "the failure is not cached";
}

TEST_F(CommandTest, RejectsOutputOfAnotherForm) {
  const ScriptCompiler script("echo words > $2");
  CommandCompiler made(script.path(), digests_, {seconds(60), directory_.path()});
  for (const Form form : {Form::Cubin, Form::Ptx}) {
    const auto compiled = made.compile(recipe_for(made, unit(script), {"sm_80", form}), {});
    ASSERT_FALSE(compiled.has_value());
    EXPECT_EQ(compiled.error().code, Code::CompileFailed);
  }
}

TEST_F(CommandTest, RemovesOnlyDirectoriesOfKilledProcesses) {
  for (const char* name : {"kiln-command-dead00", "kiln-command-alive0", "another"}) {
    std::filesystem::create_directories(directory_.path(name) + std::string("/work"));
  }
  const int alive = open(directory_.path("kiln-command-alive0").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(alive, LOCK_EX), 0);
  const ScriptCompiler script(ScriptCompiler::writes_ptx());
  CommandCompiler made(script.path(), digests_, {seconds(60), directory_.path()});
  EXPECT_TRUE(compile(made, unit(script)).has_value());
  EXPECT_FALSE(std::filesystem::exists(directory_.path("kiln-command-dead00")));
  for (const char* kept : {"kiln-command-alive0", "another"}) {
    EXPECT_TRUE(std::filesystem::exists(directory_.path(kept))) << kept;
  }
  close(alive);
}

TEST_F(CommandTest, MissingProgramIsUnavailable) {
  CommandCompiler made("no-such-compiler", digests_);
  const auto identity = made.identity({});
  ASSERT_FALSE(identity.has_value());
  EXPECT_EQ(identity.error().code, Code::Unavailable);
  EXPECT_NE(identity.error().message.find("no-such-compiler"), std::string::npos);
}

}  // namespace
}  // namespace kiln::test
