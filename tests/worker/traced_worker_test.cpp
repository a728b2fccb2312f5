// SPDX-License-Identifier: Apache-2.0
// A worker reports exactly the content that its compiler read, regardless of the directory and of concurrent changes.
// If a worker cannot record that, nothing is cached.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/hash.hpp"
#include "core/dependency_set.hpp"
#include "support/fakes/renamed_symbol.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/worker_fixture.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class ObservedWorker : public WorkerFixture {
 protected:
  ObservedWorker() { fs::create_directories(directory_.path("inc")); }
  static std::string header(int value) { return "#pragma once\n#define VALUE " + std::to_string(value) + "\n"; }
  static std::string kernel() { return "extern \"C\" __global__ void k(int* p) { *p = VALUE; }\n"; }
  static Unit unit(const std::string& root, const std::string& includes = "#include \"v.h\"\n") {
    return Unit::cuda("k.cu", includes + kernel()).with_include_root(root).with_entry("k");
  }
  bool holds(const Result<CompileResult>& compiled, const Unit& unit) {
    return !check(*compiled->artifact.dependency_set, recipe(unit).path_roots(), digests_).has_value();
  }
  /// Returns the digest of this file in the dependency set.
  static Digest digest_in(const Result<CompileResult>& compiled, const std::string& name) {
    for (const DependencySet::Dependency& item : compiled->artifact.dependency_set->items) {
      if (item.name == name && item.state == DependencySet::State::Read) return item.digest;
    }
    return {};
  }
  // Compiles and overwrites `path` as soon as the worker has closed it.
  Result<CompileResult> compile_over(const Unit& unit, const std::string& path, const std::string& text) {
    const Fd events(inotify_init1(IN_CLOEXEC));
    inotify_add_watch(events.get(), path.c_str(), IN_CLOSE_NOWRITE);
    bool written = false;
    std::thread writer([&] {
      pollfd watched{events.get(), POLLIN, 0};
      if (poll(&watched, 1, 20'000) <= 0) return;
      const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
      written = pwrite(file.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
    });
    auto compiled = compile(unit);
    writer.join();
    EXPECT_TRUE(written);
    return compiled;
  }
  // The compiler may have read either content. The dependency set must match the one that it read.
  void expect_described(const Result<CompileResult>& compiled, const Unit& unit, const std::string& path, int first,
                        int second) {
    ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
    if (compiled->uncacheable_reason == path + " changed while the compiler ran") return;  // detected by its times
    EXPECT_EQ(compiled->uncacheable_reason, "");
    const Digest seen = digest_in(compiled, "v.h");
    EXPECT_TRUE(seen == sha256(header(first)) || seen == sha256(header(second)));
    const std::string now = read_text(path);
    write_text(path, header(seen == sha256(header(first)) ? first : second));
    EXPECT_EQ(bytes(compiled), reference(unit));
    write_text(path, now);
  }
};

TEST_F(ObservedWorker, TracksAHeaderInSharedMemory) {
  const TemporaryDirectory shared("/dev/shm");
  write_text(shared.path("v.h"), header(1));
  open();
  const Unit unit = this->unit(shared.path());
  const auto one = compile(unit);
  ASSERT_TRUE(one.has_value()) << one.error().message;
  EXPECT_EQ(one->uncacheable_reason, "");
  EXPECT_TRUE(holds(one, unit));
  write_text(shared.path("v.h"), header(2));
  EXPECT_FALSE(holds(one, unit)) << "outdated code would be served";
  const auto two = compile(unit);
  EXPECT_NE(one->artifact.dependency_set->encode(), two->artifact.dependency_set->encode())
      << "two artifacts would have the same key";
}

TEST_F(ObservedWorker, TracksAHeaderBelowProcSelfCwd) {
  write_text(directory_.path("inc/v.h"), header(1));
  open();
  ASSERT_NE(fs::current_path().string(), directory_.path()) << "this process must be elsewhere";
  const Unit unit = this->unit("/proc/self/cwd/inc");
  const auto one = compile(unit);
  ASSERT_TRUE(one.has_value()) << one.error().message;
  EXPECT_EQ(one->uncacheable_reason, "");
  EXPECT_TRUE(holds(one, unit));
  write_text(directory_.path("inc/v.h"), header(2));
  EXPECT_FALSE(holds(one, unit));
}

TEST_F(ObservedWorker, DevicesAndKernelFilesAreNotCacheable) {
  open();
  const auto reason = [&](const std::string& start) {
    const auto compiled = compile(Unit::cuda("k.cu", "#define VALUE 1\n" + start + kernel()));
    return compiled ? compiled->uncacheable_reason : compiled.error().message + compiled.error().log;
  };
  const std::string device = reason("#if __has_include(\"/dev/null\")\n#endif\n");
  EXPECT_NE(device.find("/dev/null is not a regular file"), std::string::npos) << device;
  const std::string made = reason("constexpr int x =\n#include \"/proc/sys/kernel/pid_max\"\n;\n");
  EXPECT_NE(made.find("/proc/sys/kernel/pid_max is generated by the kernel"), std::string::npos) << made;
}

TEST_F(ObservedWorker, RecordsCompiledContentOfOverwrittenFile) {
  const std::string path = directory_.path("inc/v.h");
  open();
  const Unit unit = this->unit(directory_.path("inc"));
  write_text(path, header(1));
  ASSERT_TRUE(compile(unit).has_value()) << "starts the worker";
  expect_described(compile_over(unit, path, header(2)), unit, path, 1, 2);
}

TEST_F(ObservedWorker, RecordsCompiledContentWithCoarseTimes) {
  const std::string image = directory_.path("image");
  const std::string made = "truncate -s 8M " + image + " && mkfs.ext4 -q -I 128 -F " + image +
                           " 2>/dev/null && mkdir " + directory_.path("coarse") + " && mount -o loop " + image + " " +
                           directory_.path("coarse") + " 2>/dev/null";
  if (std::system(made.c_str()) != 0) GTEST_SKIP() << "cannot mount a file system with timestamps of one second";
  const std::string path = directory_.path("coarse/v.h");
  const Unit unit = this->unit(directory_.path("coarse"));
  open();
  write_text(path, header(9));
  ASSERT_TRUE(compile(unit).has_value());
  // Both contents, written within the same second, have one stamp. A slow machine needs several tries.
  bool is_same = false;
  for (int i = 0; i < 20 && !is_same; ++i) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    std::this_thread::sleep_for(std::chrono::seconds(1) - now % std::chrono::seconds(1));
    write_text(path, header(1));
    const auto before = stamp_of(path.c_str());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const auto compiled = compile_over(unit, path, header(2));
    is_same = before == stamp_of(path.c_str());
    EXPECT_TRUE(!is_same || compiled->uncacheable_reason.empty()) << compiled->uncacheable_reason;
    expect_described(compiled, unit, path, 1, 2);
  }
  EXPECT_TRUE(is_same) << "the file was never overwritten within one second";
  EXPECT_EQ(umount2(directory_.path("coarse").c_str(), MNT_DETACH), 0);
}

// From the third open on a header is served from a copy that is kept. Each open needs its own file offset: here four
// are open at the same time, and each has more to read than a buffer holds.
TEST_F(ObservedWorker, HeaderThatIncludesItselfIsReadToItsEnd) {
  const std::string filler = "/*" + std::string(200'000, '-') + "*/\n";
  std::string text = "#ifndef LEVEL0\n#define LEVEL0 1\n#include \"again.h\"\n" + filler;
  for (const char* const level : {"LEVEL1", "LEVEL2", "LEVEL3"}) {
    text += "#elif !defined(" + std::string(level) + ")\n#define " + level + " 1\n#include \"again.h\"\n" + filler +
            "#define END_OF_" + level + " 1\n";
  }
  write_text(directory_.path("inc/again.h"), text + "#endif\n");
  open();
  const std::string use = "#include \"again.h\"\n#define VALUE (END_OF_LEVEL1 + END_OF_LEVEL2 + END_OF_LEVEL3)\n";
  const Unit unit = this->unit(directory_.path("inc"), use);
  const auto compiled = compile(unit);
  ASSERT_TRUE(compiled.has_value()) << compiled.error().log;
  EXPECT_EQ(compiled->uncacheable_reason, "");
  EXPECT_EQ(bytes(compiled), reference(unit));
  EXPECT_EQ(digest_in(compiled, "again.h"), sha256(text + "#endif\n"));
}

TEST_F(ObservedWorker, FileIdentityIsPreservedDespiteCopies) {
  write_text(directory_.path("inc/v.h"), header(1) + "struct Once {};\n");
  fs::create_hard_link(directory_.path("inc/v.h"), directory_.path("inc/hard.h"));
  fs::create_symlink("v.h", directory_.path("inc/soft.h"));
  write_text(directory_.path("inc/duplicate.h"), "#pragma once\n#define DUPLICATE 1\n");
  write_text(directory_.path("inc/other.h"), "#pragma once\n#define DUPLICATE 1\n");
  open();
  const std::string all =
      "#include \"v.h\"\n#include \"hard.h\"\n#include \"soft.h\"\n#include \"duplicate.h\"\n#include \"other.h\"\n";
  const Unit unit = this->unit(directory_.path("inc"), all);
  const auto compiled = compile(unit);
  ASSERT_TRUE(compiled.has_value()) << compiled.error().log;
  EXPECT_EQ(bytes(compiled), reference(unit));
  EXPECT_EQ(compiled->uncacheable_reason, "");
  EXPECT_TRUE(holds(compiled, unit));
}

TEST_F(ObservedWorker, SentinelIsReadBeforeAndAfterCompile) {
  write_text(directory_.path("inc/v.h"), header(1));
  write_text(directory_.path("inc/sentinel"), "one");
  open();
  const Unit unit =
      Unit::cuda("k.cu", "#include \"v.h\"\n" + kernel()).with_include_root(directory_.path("inc"), "sentinel");
  const auto compiled = compile(unit);
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
  EXPECT_EQ(compiled->uncacheable_reason, "");
  ASSERT_TRUE(holds(compiled, unit));
  write_text(directory_.path("inc/sentinel"), "two");
  EXPECT_FALSE(holds(compiled, unit));
}

TEST_F(ObservedWorker, TimeMacroNextToNvidiaHeadersIsNotCacheable) {
  fs::create_directories(directory_.path("inc/nv"));
  write_text(directory_.path("inc/nv/target"), "// NVIDIA\n");
  open();
  for (const std::string time : {"__TIME__", "__TI\\\nME__", "JOIN(__TI, ME__)"}) {
    write_text(directory_.path("inc/v.h"), "#define JOIN(a, b) a##b\n#define VALUE (" + time + "[7] == '0')\n");
    const auto compiled = compile(unit(directory_.path("inc")));
    ASSERT_TRUE(compiled.has_value()) << compiled.error().log;
    EXPECT_NE(compiled->uncacheable_reason.find("__TIME__"), std::string::npos) << time;
  }
}

TEST_F(ObservedWorker, CubResultIsIndependentOfPaths) {
  open();
  Unit unit = Unit::cuda("sum.cu", cub_source()).with_entry("sum");
  for (const std::string& option : cub_options()) unit = unit.with_option(option);
  for (const std::string& root : cub_roots()) unit = unit.with_include_root(root);
  const auto compiled = compile(unit);
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
  EXPECT_EQ(compiled->uncacheable_reason, "");
  EXPECT_FALSE(compiled->artifact.dependency_set->embeds_paths);
  EXPECT_TRUE(holds(compiled, unit));
}

TEST_F(ObservedWorker, ReportsMissingProc) {
  if (geteuid() != 0 || std::system("unshare -m true 2>/dev/null") != 0) {
    GTEST_SKIP() << "only root can remove /proc from a worker";
  }
  write_text(directory_.path("inc/v.h"), header(1));
  const std::string program = directory_.path("without-proc");
  write_text(program, "#!/bin/sh\nexec unshare -m sh -c 'mount -t tmpfs none /proc && exec \"$0\" \"$@\"' " +
                          WorkerPool(pool_options_).program() + " \"$@\"\n");
  fs::permissions(program, fs::perms::owner_all);
  pool_options_.program = program;
  open();
  const auto compiled = compile(unit(directory_.path("inc")));
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
  EXPECT_NE(compiled->uncacheable_reason.find("mount /proc"), std::string::npos) << compiled->uncacheable_reason;
}

// A worker that lacks one of the functions by which it intercepts its compiler.
class AccessCheck : public ObservedWorker {
 protected:
  // Compiles in a new worker, like another process of this host.
  Result<CompileResult> compile_in_new_process() {
    LibraryCheck checks([this] { return directory_.path("checks"); }, {});
    WorkerCompiler::Options options;
    options.checks = &checks;
    compiler_.reset();
    open(options);
    auto compiled = compile(unit(directory_.path("inc")));
    compiler_.reset();
    return compiled;
  }
};

// The check asks for a missing header of a name that no other compile uses.
TEST_F(AccessCheck, RunsOncePerWorkerProgramAndHost) {
  write_text(directory_.path("inc/v.h"), header(1));
  const std::string original = WorkerPool(pool_options_).program();
  const std::string copy = directory_.path("copy");
  fs::copy_file(original, copy);
  const auto checks = [&](const std::string& worker) {
    write_text(directory_.path("worker"),
               "#!/bin/sh\nexec strace -D -f -o '" + directory_.path("calls") + "' '" + worker + "' \"$@\"\n");
    fs::permissions(directory_.path("worker"), fs::perms(0755));
    pool_options_.program = directory_.path("worker");
    const auto compiled = compile_in_new_process();
    EXPECT_TRUE(compiled.has_value() && compiled->uncacheable_reason.empty());
    return read_text(directory_.path("calls")).find("kiln-canary-that-is-not-there.h") != std::string::npos;
  };
  EXPECT_TRUE(checks(original));
  EXPECT_FALSE(checks(original)) << "the second process checked again";
  EXPECT_TRUE(checks(copy)) << "another worker program did not check";
  EXPECT_FALSE(checks(copy));
}

TEST_F(AccessCheck, PassedCheckOfOneWorkerDoesNotCoverAnother) {
  write_text(directory_.path("inc/v.h"), header(1));
  EXPECT_EQ(compile_in_new_process()->uncacheable_reason, "");
  const std::string blind = directory_.path("kiln-worker");
  ASSERT_TRUE(copy_without_symbol(WorkerPool(pool_options_).program(), "fopen", blind));
  pool_options_.program = blind;
  for (int process = 0; process < 2; ++process) {
    const auto compiled = compile_in_new_process();
    ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
    EXPECT_NE(compiled->uncacheable_reason, "") << "a failed check was remembered as passed";
  }
}

class WorkerWithout : public ObservedWorker, public testing::WithParamInterface<const char*> {};

TEST_P(WorkerWithout, DetectsEveryEditOrIsNotCacheable) {
  const std::string program = directory_.path("kiln-worker");
  ASSERT_TRUE(copy_without_symbol(WorkerPool(pool_options_).program(), GetParam(), program));
  pool_options_.program = program;
  write_text(directory_.path("inc/v.h"), header(1));
  fs::create_hard_link(directory_.path("inc/v.h"), directory_.path("inc/link.h"));
  open();
  const Unit unit = this->unit(directory_.path("inc"),
                               "#include \"v.h\"\n#include \"link.h\"\n#if __has_include(\"late.h\")\n"
                               "#undef VALUE\n#define VALUE 7\n#endif\n#if __has_include(\"v.h\")\n#endif\n");
  const auto compiled = compile(unit);
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
  EXPECT_EQ(bytes(compiled), reference(unit));
  RecordProperty("noticed", compiled->uncacheable_reason);
  std::printf("%s: %s\n", GetParam(), compiled->uncacheable_reason.empty() ? "not needed" : "noticed");
  if (!compiled->uncacheable_reason.empty()) return;
  EXPECT_TRUE(holds(compiled, unit));
  write_text(directory_.path("inc/late.h"), "");
  EXPECT_FALSE(holds(compiled, unit)) << "a new header is not detected";
  fs::remove(directory_.path("inc/late.h"));
  fs::remove(directory_.path("inc/link.h"));
  write_text(directory_.path("inc/link.h"), "#undef VALUE\n" + header(3));
  EXPECT_FALSE(holds(compiled, unit)) << "a replaced link is not detected";
  fs::remove(directory_.path("inc/link.h"));
  fs::create_hard_link(directory_.path("inc/v.h"), directory_.path("inc/link.h"));
  EXPECT_TRUE(holds(compiled, unit));
  write_text(directory_.path("inc/v.h"), header(2));
  EXPECT_FALSE(holds(compiled, unit)) << "an edit is not detected";
}

INSTANTIATE_TEST_SUITE_P(Each, WorkerWithout,
                         testing::Values("access", "fopen", "fopen64", "fstat", "fstat64", "lstat", "lstat64",
                                         "mkstemp", "mmap", "mmap64", "open", "open64", "openat", "openat64", "stat",
                                         "stat64", "__fxstat", "__fxstat64", "__lxstat", "__lxstat64", "__xstat",
                                         "__xstat64"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace kiln::test
