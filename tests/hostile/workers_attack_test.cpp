// SPDX-License-Identifier: Apache-2.0
// A compiler that its source has compromised can do anything inside kiln-worker. Each test makes it try one attack by
// raw system calls.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "backends/cuda/nvrtc_compiler.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "worker/sandbox.hpp"
#include "worker/worker_compiler.hpp"
#include "worker/worker_files.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class HostileWorkers : public testing::Test {
 protected:
  void SetUp() override {
    const SandboxParts parts = available_sandbox();
    std::printf("sandbox: seccomp %s, Landlock ABI %d\n", parts.seccomp ? "yes" : "no", parts.landlock_abi);
    for (const char* name : {"home", "inc", "work"}) fs::create_directories(directory_.path(name));
    write_text(secret(), "a private key");
    pool_options_.slots_directory = directory_.path("slots");
    pool_options_.program = KILN_WORKER;
    pool_options_.max_workers = 2;
  }
  void needs_filter() {
    if (!available_sandbox().seccomp) GTEST_SKIP() << "this kernel or container has no seccomp filters";
  }
  void needs_landlock(int abi = 1) {
    if (available_sandbox().landlock_abi < abi) GTEST_SKIP() << "this kernel has no Landlock ABI " << abi;
  }

  void open(SandboxSettings sandbox = {}) {
    pool_ = std::make_unique<WorkerPool>(pool_options_);
    WorkerCompiler::Options options;
    options.pool = pool_.get();
    options.sandbox = std::move(sandbox);
    compiler_ = std::make_unique<WorkerCompiler>(std::make_unique<NvrtcCompiler>(KILN_HOSTILE_NVRTC, digests_),
                                                 digests_, options, log_.emitter());
  }
  std::string secret() const { return directory_.path("home/id_ed25519"); }
  /// Returns a unit with a header, so that it is compiled in a worker.
  Unit unit(const std::string& text) const {
    return Unit::cuda("k.cu", "#include <absent.h>\n" + text).with_include_root(directory_.path("inc"));
  }
  Result<CompileResult> compile(const Unit& unit) {
    Recipe recipe = recipe_for(*compiler_, unit, Target::sm(80));
    recipe.working_directory = directory_.path("work");
    return compiler_->compile(recipe, {});
  }
  static std::string text_of(const Result<CompileResult>& compiled) {
    return compiled ? std::string(compiled->artifact.bytes.view()) : "nothing: " + compiled.error().message;
  }
  /// Returns the result of an attack.
  std::string result(const std::string& attack) { return text_of(compile(unit("//! " + attack + "\n"))); }
  void expect_denied(const std::string& attack, int error) {
    const std::string said = result(attack);
    const std::string name = attack.substr(0, attack.find(' '));
    EXPECT_EQ(said, "missing\n" + name + ": errno " + std::to_string(error) + "\n") << attack;
  }
  void expect_done(const std::string& attack) {
    EXPECT_EQ(result(attack), "missing\n" + attack.substr(0, attack.find(' ')) + ": done\n") << attack;
  }

  const TemporaryDirectory directory_;
  EventLog log_;
  FileDigestCache digests_{std::string()};
  WorkerPool::Options pool_options_;
  std::unique_ptr<WorkerPool> pool_;
  std::unique_ptr<WorkerCompiler> compiler_;
};

TEST_F(HostileWorkers, CompilerOpensNoSocket) {
  needs_filter();
  open();
  expect_denied("socket", EPERM);
  expect_denied("unix-socket", EPERM);
}

TEST_F(HostileWorkers, CompilerRunsNoProgram) {
  needs_filter();
  open();
  expect_denied("run /bin/true", EPERM);
  expect_denied("exec /bin/true", EPERM);
}

TEST_F(HostileWorkers, CompilerTracesAndSignalsNoOtherProcess) {
  needs_filter();
  open();
  const std::string host = std::to_string(getpid());
  for (const char* attack : {"trace ", "memory ", "signal ", "limit "}) expect_denied(attack + host, EPERM);
  expect_denied("signal -1", EPERM);
  expect_denied("signal 0", EPERM);
  expect_done("own-signal");  // used by abort()
}

TEST_F(HostileWorkers, CompilerMountsNothingAndHasNoCapabilities) {
  needs_filter();
  open();
  expect_denied("mount " + directory_.path("work"), EPERM);
  expect_denied("capabilities", EPERM);
}

TEST_F(HostileWorkers, CompilerReadsNoFileOutsideOfItsRoots) {
  needs_landlock();
  open();
  expect_denied("read " + secret(), EACCES);
  expect_denied("list " + directory_.path("home"), EACCES);
  expect_denied("read /proc/" + std::to_string(getpid()) + "/environ", EACCES);
  if (geteuid() == 0) expect_denied("read /etc/shadow", EACCES);
}

TEST_F(HostileWorkers, CompilerWritesNoFileOfItsUser) {
  needs_landlock();
  open();
  for (const char* place : {"home/new", "inc/new.h", "work/new"})
    expect_denied("write " + directory_.path(place), EACCES);
  expect_denied("write " + secret(), EACCES);
  expect_denied("write /tmp/kiln-hostile-test", EACCES);
  expect_denied("remove " + secret(), EACCES);
  EXPECT_EQ(read_text(secret()), "a private key");
}

TEST_F(HostileWorkers, CompilerChangesNoModeOfAFile) {
  needs_filter();
  open();
  expect_denied("mode " + secret(), EPERM);
}

TEST_F(HostileWorkers, HostOpensNoFileOutsideOfTheRoots) {
  needs_landlock();
  open();
  fs::create_symlink(directory_.path("home"), directory_.path("inc/up"));
  write_text(directory_.path("inc/fine.h"), "fine");
  expect_done("ask " + directory_.path("inc/fine.h"));
  for (const std::string& path :
       {secret(), directory_.path("inc/../home/id_ed25519"), std::string("../home/id_ed25519"),
        directory_.path("inc/up/../home/id_ed25519"), std::string("/proc/self/environ/../../1/x")}) {
    const auto asked = compile(unit("//! ask " + path + "\n"));
    EXPECT_EQ(text_of(asked).find("done"), std::string::npos) << path;
  }
  expect_denied("ask-to-write " + directory_.path("inc/new.h"), EACCES);
  expect_denied("ask-to-write " + secret(), EACCES);
  EXPECT_EQ(read_text(secret()), "a private key");
}

TEST_F(HostileWorkers, IncludeRootOfLinksStillCompiles) {
  open();
  fs::create_directories(directory_.path("elsewhere/deep"));
  write_text(directory_.path("elsewhere/deep/one.h"), "one\n");
  write_text(directory_.path("elsewhere/two.h"), "two\n");
  fs::create_directories(directory_.path("forest/deep"));
  fs::create_symlink(directory_.path("elsewhere/deep/one.h"), directory_.path("forest/deep/one.h"));
  fs::create_symlink(directory_.path("elsewhere/two.h"), directory_.path("forest/two.h"));
  const auto compiled =
      compile(Unit::cuda("k.cu", "#include <deep/one.h>\n#include <two.h>\n#include <deep/../two.h>\n")
                  .with_include_root(directory_.path("forest")));
  EXPECT_EQ(text_of(compiled), "one\ntwo\ntwo\n");
  ASSERT_TRUE(compiled.has_value());
  EXPECT_EQ(compiled->uncacheable_reason, "");
  EXPECT_GE(compiled->artifact.dependency_set->items.size(), 2U);
}

TEST_F(HostileWorkers, DeniedHeaderIsAnErrorAndNeverCached) {
  needs_landlock();
  write_text(directory_.path("home/v.h"), "value\n");
  const Unit with_path = unit("#include \"" + directory_.path("home/v.h") + "\"\n");
  const Unit with_question = unit("#if __has_include(\"" + directory_.path("home/v.h") + "\")\n#endif\n");
  open();
  for (const Unit& each : {with_path, with_question}) {
    const auto compiled = compile(each);
    ASSERT_FALSE(compiled.has_value()) << text_of(compiled);
    EXPECT_EQ(compiled.error().message,
              "unit 'k.cu': the compiler was denied read access to " + directory_.path("home/v.h") +
                  ", which is outside the unit's include roots; add its directory as an include root, list it in "
                  "worker.readable, or set worker.sandbox = off");
  }
  EXPECT_EQ(text_of(compile(with_path.with_option("-I" + directory_.path("home")))), "missing\nvalue\n")
      << "allowed by an option";
  open({true, {directory_.path("home")}});
  EXPECT_EQ(text_of(compile(with_path)), "missing\nvalue\n") << "worker.readable";
  EXPECT_EQ(text_of(compile(with_path.with_include_root(directory_.path("home")))), "missing\nvalue\n");
}

TEST_F(HostileWorkers, FileUnreadableByUserIsStillMissing) {
  if (geteuid() == 0) {
    // Root can read everything; a directory instead of a file is the closest substitute.
    fs::create_directories(directory_.path("inc/sub.h"));
    open();
    EXPECT_EQ(text_of(compile(unit("#include <sub.h>\n"))).find("nothing"), std::string::npos);
    return;
  }
  write_text(directory_.path("home/v.h"), "value\n");
  ASSERT_EQ(chmod(directory_.path("home/v.h").c_str(), 0), 0);
  open();
  EXPECT_EQ(text_of(compile(unit("#include \"" + directory_.path("home/v.h") + "\"\n"))), "missing\nmissing\n");
}

TEST_F(HostileWorkers, JobWithOtherRootsReadsOnlyThose) {
  needs_landlock();
  open();
  fs::create_directories(directory_.path("other"));
  write_text(directory_.path("inc/v.h"), "first\n");
  write_text(directory_.path("other/v.h"), "second\n");
  EXPECT_EQ(text_of(compile(Unit::cuda("k.cu", "#include <v.h>\n").with_include_root(directory_.path("inc")))),
            "first\n");
  const std::string other = "#include <v.h>\n//! read " + directory_.path("inc/v.h") + "\n";
  EXPECT_EQ(text_of(compile(Unit::cuda("k.cu", other).with_include_root(directory_.path("other")))),
            "second\nread: errno " + std::to_string(EACCES) + "\n");
  EXPECT_EQ(pool_->workers().size(), 1U) << "one worker serves both";
}

TEST_F(HostileWorkers, SandboxCanBeDisabled) {
  open({false, {}});
  expect_done("socket");
  expect_done("run /bin/true");
  expect_done("read " + secret());
  expect_done("write " + directory_.path("home/new"));
  expect_done("signal " + std::to_string(getpid()));
}

}  // namespace
}  // namespace kiln::test
