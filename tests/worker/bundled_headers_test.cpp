// SPDX-License-Identifier: Apache-2.0
// The headers that NVRTC bundles since 13.3: installed once, when a unit needs them, and tracked like other headers.
// The NVRTC is that of tools/setup.sh; no toolkit is involved.
#include "backends/cuda/bundled_headers.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "backends/cuda/nvrtc_compiler.hpp"
#include "base/files/lock_file.hpp"
#include "base/hash.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/toolkit.hpp"
#include "worker/worker_compiler.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

// A host: a directory for headers, and NVRTC in workers.
struct Host {
  Host(const std::string& nvrtc, const TemporaryDirectory& directory, const std::string& name, FileDigestCache& digests,
       const std::string& program = {})
      : headers(name.empty() ? name : directory.path(name)), bundled([this] { return headers; }, log.emitter()) {
    WorkerPool::Options options;
    options.slots_directory = directory.path("slots");
    options.max_workers = 2;
    options.program = program;
    pool = std::make_unique<WorkerPool>(options);
    WorkerCompiler::Options how;
    how.pool = pool.get();
    how.bundled = &bundled;
    how.sandbox.readable = {directory.path("readable")};
    compiler =
        std::make_unique<WorkerCompiler>(std::make_unique<NvrtcCompiler>(nvrtc, digests), digests, how, log.emitter());
  }
  Recipe recipe(const Unit& unit) const {
    Recipe made = recipe_for(*compiler, unit, Target::sm(80));
    made.working_directory = "/";
    return made;
  }
  Result<CompileResult> compile(const Unit& unit) const { return compiler->compile(recipe(unit), {}); }
  std::size_t installs() const { return log.of(Event::Kind::HeadersInstalled).size(); }
  std::string place() const { return recipe(Unit::cuda("k.cu", "")).compiler.roots.back().path; }

  EventLog log;
  const std::string headers;
  BundledHeaders bundled;
  std::unique_ptr<WorkerPool> pool;
  std::unique_ptr<WorkerCompiler> compiler;
};

class Bundled : public testing::Test {
 protected:
  void SetUp() override {
    if (nvrtc_.empty()) GTEST_SKIP() << "no NVRTC of PyPI in .venv (tools/setup.sh)";
    const auto identity = NvrtcCompiler(nvrtc_, digests()).identity({});
    if (!has_bundled_headers(*identity)) GTEST_SKIP() << "NVRTC " << identity->version << " bundles no headers";
  }
  static FileDigestCache& digests() {
    static FileDigestCache digests{std::string()};
    return digests;
  }
  Host host(const std::string& name = "headers") const { return {nvrtc_, directory_, name, digests()}; }
  static Unit half(const std::string& text = "1") {
    return Unit::cuda("half.cu",
                      "#include <cuda_fp16.h>\nextern \"C\" __global__ void k(__half* p) { *p = __hadd(*p, __half(" +
                          text + ")); }\n")
        .with_entry("k");
  }
  static HeaderInstaller installer(const Host& host) {
    HeaderInstaller made;
    made.worker = host.pool->program();
    return made;
  }
  static ArtifactKey key_of(const Host& host, const Unit& unit, const Result<CompileResult>& compiled) {
    return artifact_key(host.recipe(unit).request_key(), *compiled->artifact.dependency_set);
  }

  const std::string nvrtc_ = package_nvrtc(KILN_SOURCE_DIR);
  const TemporaryDirectory directory_;
};

TEST_F(Bundled, UnitCompilesWithHeadersThatAreInstalledOnceAndTracked) {
  const Host one = host();
  const auto compiled = one.compile(half());
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message << compiled.error().log;
  EXPECT_EQ(compiled->uncacheable_reason, "");
  EXPECT_EQ(one.installs(), 1U);
  const auto with_root =
      one.compile(half("2").with_include_root(directory_.path()));  // NVRTC words its error differently
  EXPECT_TRUE(with_root.has_value()) << with_root.error().message << with_root.error().log;
  const Host next = host();
  EXPECT_TRUE(next.compile(half("3")).has_value());
  EXPECT_EQ(one.installs() + next.installs(), 1U);

  const std::string header = one.place() + "/cuda_fp16.h";
  struct stat status;
  ASSERT_EQ(stat(header.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0444U);
  EXPECT_FALSE(check(*compiled->artifact.dependency_set, one.recipe(half()).path_roots(), digests()).has_value());
  fs::permissions(header, fs::perms::owner_write, fs::perm_options::add);
  write_text(header, read_text(header) + "\n");
  const auto changed = check(*compiled->artifact.dependency_set, one.recipe(half()).path_roots(), digests());
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ(changed->path, header);
}

TEST_F(Bundled, TwoHostsHaveTheSameKey) {
  const Host one = host("a");
  const Host two = host("b");
  const auto first = one.compile(half());
  const auto second = two.compile(half());
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(key_of(one, half(), first), key_of(two, half(), second));
  EXPECT_FALSE(first->artifact.dependency_set->is_host_specific());
}

TEST_F(Bundled, UnitThatCompilesWithoutThemDoesNotSeeThem) {
  const Host one = host();
  const Unit unit = Unit::cuda("k.cu",
                               "#if __has_include(<cuda_fp16.h>)\n#error found\n#endif\n"
                               "extern \"C\" __global__ void k(int* p) { *p = 1; }\n")
                        .with_entry("k");
  const auto compiled = one.compile(unit);
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message << compiled.error().log;
  EXPECT_EQ(one.installs(), 0U);
  EXPECT_FALSE(fs::exists(one.headers));
  Host without = host("");
  const auto same = without.compile(unit);
  ASSERT_TRUE(same.has_value());
  EXPECT_EQ(key_of(one, unit, compiled), key_of(without, unit, same));
}

TEST_F(Bundled, DebugInformationOfAUnitWithoutThemIsFoundAgain) {
  const Host one = host();
  write_text(directory_.path("inc.h"), "#define ONE 1\n");
  const Unit unit = Unit::cuda("k.cu", "#include <inc.h>\nextern \"C\" __global__ void k(int* p) { *p = ONE; }\n")
                        .with_entry("k")
                        .with_option("-lineinfo")
                        .with_include_root(directory_.path());
  const auto compiled = one.compile(unit);
  ASSERT_TRUE(compiled.has_value()) << compiled.error().log;
  EXPECT_TRUE(compiled->artifact.dependency_set->embeds_paths);
  EXPECT_EQ(compiled->artifact.dependency_set->root_paths.size(), 1U);
  EXPECT_FALSE(check(*compiled->artifact.dependency_set, one.recipe(unit).path_roots(), digests()).has_value());
}

TEST_F(Bundled, HeaderThatIsNowhereFailsWithTheCompilersLog) {
  const Host one = host();
  const Unit unit = Unit::cuda("k.cu", "#include <nowhere.h>\n");
  const auto failed = one.compile(unit);
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, Code::CompileFailed);
  EXPECT_NE(failed.error().log.find("nowhere.h"), std::string::npos);
  EXPECT_FALSE(one.compiler->should_retry(one.recipe(unit)));
}

TEST_F(Bundled, WithoutACacheTheErrorStatesTheNextStep) {
  const Host one = host("");
  const auto failed = one.compile(half());
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, Code::CompileFailed);
  EXPECT_NE(failed.error().message.find("; enable it (KILN_DISABLE, KILN_CACHE_DIR) or add an include root"),
            std::string::npos)
      << failed.error().message;
}

TEST_F(Bundled, ThreadsAndRemainsOfDeadProcessesLeadToOneInstallation) {
  Host one = host();
  Host two = host();
  const std::string remains = one.place() + ".tmp-1";
  fs::create_directories(remains);
  fs::permissions(one.headers, fs::perms::owner_all);
  Status first;
  Status second;
  const auto install = [&](Host& host) { return host.bundled.install(host.place(), nvrtc_, installer(host), {}); };
  std::thread other([&] { second = install(two); });
  first = install(one);
  other.join();
  EXPECT_TRUE(first.has_value()) << first.error().message;
  EXPECT_TRUE(second.has_value()) << second.error().message;
  EXPECT_EQ(one.installs() + two.installs(), 1U);
  EXPECT_FALSE(fs::exists(remains));
  EXPECT_EQ(installed_headers(one.headers), std::vector<std::string>{one.place()});
}

TEST_F(Bundled, IncompleteInstallationIsReplaced) {
  const Host one = host();
  ASSERT_TRUE(one.compile(half()).has_value());
  // As after a crash of the machine.
  const std::string header = one.place() + "/cuda_fp16.h";
  fs::permissions(header, fs::perms::owner_write, fs::perm_options::add);
  write_text(header, "");
  fs::create_directories(one.place() + ".tmp-incomplete/of-a-process-that-died");
  const Host next = host();
  const auto compiled = next.compile(half());
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message << compiled.error().log;
  EXPECT_EQ(next.installs(), 1U);
  EXPECT_NE(read_text(header), "");
}

TEST_F(Bundled, FailedInstallerLeavesNothingAndStatesTheReason) {
  Host one = host();
  HeaderInstaller by = installer(one);
  const Status bad = one.bundled.install(one.place(), directory_.path("nothing.so"), by, {});
  ASSERT_FALSE(bad.has_value());
  EXPECT_NE(bad.error().message.find("nothing.so"), std::string::npos) << bad.error().message;
  std::stop_source stop;
  stop.request_stop();
  RequestContext canceled;
  canceled.stop = stop.get_token();
  EXPECT_EQ(one.bundled.install(one.place(), nvrtc_, by, canceled).error().code, Code::Cancelled);
  by.worker = "/bin/true";
  const Status nothing = one.bundled.install(one.place(), nvrtc_, by, {});
  ASSERT_FALSE(nothing.has_value());
  EXPECT_NE(nothing.error().message.find("did not write cuda_fp16.h"), std::string::npos) << nothing.error().message;
  by.worker = "/bin/false";
  const Status dead = one.bundled.install(one.place(), nvrtc_, by, {});
  ASSERT_FALSE(dead.has_value());
  EXPECT_NE(dead.error().message.find("exit code 1"), std::string::npos) << dead.error().message;
  by.worker = "";
  const Status none = one.bundled.install(one.place(), nvrtc_, by, {});
  EXPECT_NE(none.error().message.find("; set KILN_WORKER"), std::string::npos) << none.error().message;
  EXPECT_EQ(installed_headers(one.headers), std::vector<std::string>());
}

TEST_F(Bundled, InstallerGetsWhatAWorkerGets) {
  const std::string seen = directory_.path("seen");
  const std::string program = directory_.path("worker.sh");
  write_text(program, "#!/bin/sh\n[ \"$1\" = install-headers ] && { /usr/bin/env; echo \"$@\"; } > " + seen +
                          "\nexec " + host().pool->program() + " \"$@\"\n");
  fs::permissions(program, fs::perms::owner_all);
  setenv("KILN_TEST_SECRET", "secret", 1);
  const Host one{nvrtc_, directory_, "headers", digests(), program};
  const auto compiled = one.compile(half());
  unsetenv("KILN_TEST_SECRET");
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message << compiled.error().log;
  const std::string text = read_text(seen);
  EXPECT_NE(text.find("CUDA_CACHE_DISABLE=1\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("secret"), std::string::npos) << text;
  EXPECT_NE(text.find(" sandboxed " + directory_.path("readable") + "\n"), std::string::npos) << text;
}

TEST_F(Bundled, FilesRemovedAfterTheCheckAreInstalledAgain) {
  const Host one = host();
  ASSERT_TRUE(one.compile(half()).has_value());
  ASSERT_TRUE(one.compile(half("3")).has_value());  // finds them complete, and does not check them again
  fs::remove(one.place() + "/cuda_fp16.h");
  const auto compiled = one.compile(half("2"));
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message << compiled.error().log;
  EXPECT_EQ(one.installs(), 2U);
}

TEST_F(Bundled, RemovalSkipsARunningInstallation) {
  const std::string root = directory_.path("headers");
  const std::string installing = root + "/13.4-x.tmp-77";
  fs::create_directories(installing);
  fs::create_directories(root + "/13.4-x");
  fs::create_directories(root + "/13.3-y");
  fs::permissions(root, fs::perms::owner_all);
  const auto locks = LockFile::open(root + "/lock");
  ASSERT_TRUE(locks.has_value());
  {
    const LockFile::ScopedLock lock = (*locks)->try_lock_scoped(sha256("13.4-x"));
    remove_bundled_headers(root, std::chrono::hours(0));
    EXPECT_TRUE(fs::exists(installing));
    EXPECT_EQ(installed_headers(root), std::vector<std::string>{root + "/13.4-x"});
  }
  remove_bundled_headers(root, std::chrono::hours(0));
  EXPECT_FALSE(fs::exists(installing));
  EXPECT_EQ(installed_headers(root), std::vector<std::string>());
}

TEST_F(Bundled, UnitsWithTheSameHeadersShareAPrecompiledHeader) {
  Host one = host();
  PchManager headers(
      [&] {
        PchCache::Options options;
        options.directory = directory_.path("pch");
        return std::optional(options);
      },
      digests(), one.log.emitter(), std::uint64_t{4} << 30);
  WorkerCompiler::Options how;
  how.pool = one.pool.get();
  how.bundled = &one.bundled;
  how.headers = &headers;
  one.compiler = std::make_unique<WorkerCompiler>(std::make_unique<NvrtcCompiler>(nvrtc_, digests()), digests(), how,
                                                  one.log.emitter());
  for (const char* text : {"1", "2", "3"}) {
    const auto compiled = one.compile(half(text));
    ASSERT_TRUE(compiled.has_value()) << compiled.error().message << compiled.error().log;
  }
  EXPECT_EQ(one.log.of(Event::Kind::PchCreated).size(), 1U);
  EXPECT_EQ(one.log.of(Event::Kind::PchUsed).size(), 1U);
  EXPECT_EQ(one.log.of(Event::Kind::PchUnavailable).size(), 0U);
}

TEST_F(Bundled, DirectoryOfOtherUsersIsRejected) {
  const Host one = host();
  fs::create_directories(one.place());
  ASSERT_EQ(chmod(one.place().c_str(), 0777), 0);
  const auto failed = one.compile(half());
  ASSERT_FALSE(failed.has_value());
  EXPECT_NE(failed.error().message.find("were not installed: " + one.place()), std::string::npos)
      << failed.error().message;
  // It is not an error of the unit.
  EXPECT_EQ(failed.error().code, Code::Unavailable);
  EXPECT_NE(failed.error().log.find("cuda_fp16.h"), std::string::npos);
  EXPECT_TRUE(one.compiler->should_retry(one.recipe(half())));
  fs::permissions(one.place(), fs::perms::owner_all);
  EXPECT_TRUE(one.compile(half()).has_value());
}

TEST_F(Bundled, HeadersThatNoCompileUsedForAMonthAreRemoved) {
  const std::string root = directory_.path("headers");
  const auto age = [](const std::string& path, int days) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(24 * days));
  };
  for (const char* name : {"/13.3-old", "/13.3-new", "/13.4-x.tmp-77"}) fs::create_directories(root + name + "/cccl");
  fs::permissions(root, fs::perms::owner_all);
  age(root + "/13.3-old", 31);
  age(root + "/13.3-new", 29);
  age(root + "/13.4-x.tmp-77", 31);
  remove_bundled_headers(root, kUnusedHeadersAge);
  EXPECT_EQ(installed_headers(root), std::vector<std::string>{root + "/13.3-new"});
  EXPECT_FALSE(fs::exists(root + "/13.4-x.tmp-77"));
  remove_bundled_headers(root, std::chrono::hours(0));
  EXPECT_EQ(installed_headers(root), std::vector<std::string>());
}

}  // namespace
}  // namespace kiln::test
