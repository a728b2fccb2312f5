// SPDX-License-Identifier: Apache-2.0
// Faults of a precompiled header's file: each is detected and reported and costs one full compile. The artifact is
// right, and the next compile creates the file again.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/hash.hpp"
#include "property/bare_nvrtc.hpp"
#include "support/fixtures/pch_fixture.hpp"
#include "support/processes/sanitizer.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class PchFiles : public PchTest {
 protected:
  // A unit that makes the compiler warn about its own code: its log must not change either.
  Unit warned() const {
    return unit(3, "#include <wide.h>\n__device__ int f(unsigned x) { int unused; return x < 0 ? 1 : 2; }\n");
  }

  // Stores other bytes under the key, with a matching description.
  static void forge(PchProcess& one, const Digest& key, const std::string& bytes) {
    ASSERT_FALSE(bytes.empty());
    PchCache pch_cache = one.pch_cache();
    auto pch = pch_cache.find(key);
    ASSERT_TRUE(pch.has_value());
    const auto making = pch_cache.try_begin_write(key);
    ASSERT_NE(making, nullptr);
    write_text(making->path(), bytes);
    pch->size = bytes.size();
    pch->checksum = xxh3(as_bytes(bytes));
    ASSERT_TRUE(making->publish(*pch).has_value());
  }

  // Compiles with workers that have loaded `preload`, which prevents the heap from being at its address.
  void expect_unavailable(const std::string& preload) {
    auto maker = process_with_headers();
    write_text(directory_.path("worker"),
               "#!/bin/sh\nLD_PRELOAD='" + preload + "' exec '" + find_worker({}) + "' \"$@\"\n");
    fs::permissions(directory_.path("worker"), fs::perms(0755));
    auto plain = process({.directory = directory_.path("plain"), .headers = false});
    const Seen truth(plain->compile(warned()));
    for (const char* directory : {"cache", "empty"}) {
      auto one = process({.directory = directory_.path(directory), .worker = directory_.path("worker")});
      one->expect_queued_similar(warned());
      for (int i = 0; i < 3; ++i) expect_same(truth, Seen(one->compile(warned())), directory);
      EXPECT_EQ(one->kept() + one->used() + one->dropped(), 0U);
      EXPECT_EQ(one->events.count(Event::Kind::PchUnavailable), 1U) << "the event is emitted once";
      EXPECT_EQ(one->events.count(Event::Kind::WorkerLost), 0U);
    }
    EXPECT_TRUE(fs::exists(maker->file_of(*maker->key_of(unit(1))))) << "other processes can still use it";
  }

  // The next compile reports that it was dropped and why, and is right. The one after that has created it again.
  void expect_dropped_and_rebuilt(PchProcess& one, const std::string& reason, const std::string& what) {
    SCOPED_TRACE(what);
    const std::size_t kept = one.kept();
    const std::size_t used = one.used();
    const std::size_t dropped = one.dropped();
    auto plain = process({.directory = directory_.path("plain"), .headers = false});
    const Seen truth(plain->compile(warned()));
    ASSERT_TRUE(truth.ok && !truth.log.empty()) << truth.log;
    expect_same(truth, Seen(one.compile(warned())), "the compile that detects it");
    EXPECT_EQ(one.dropped(), dropped + 1);
    EXPECT_NE(one.dropped_reason().find(reason), std::string::npos) << one.dropped_reason();
    EXPECT_EQ(one.used(), used);
    expect_same(truth, Seen(one.compile(warned())), "the next compile");
    EXPECT_EQ(one.kept(), kept + 1) << "it was not created again";
    expect_same(truth, Seen(one.compile(warned())), "the one after that");
    EXPECT_GE(one.used(), used + 1);
    EXPECT_EQ(one.dropped(), dropped + 1);
    std::printf("figure: precompiled header %s: dropped ('%s'), artifact right, created again\n", what.c_str(),
                one.dropped_reason().c_str());
  }
};

TEST_F(PchFiles, RejectsAndRebuildsFileOfOtherNvrtc) {
  const std::string other = package_nvrtc(KILN_SOURCE_DIR);
  if (other.empty()) GTEST_SKIP() << "no second NVRTC in .venv: run tools/setup.sh";
  if (kAddressSanitizer) GTEST_SKIP() << "the package's NVRTC does not find its builtins under this sanitizer";
  auto external = process_with_headers({.directory = directory_.path("foreign"), .nvrtc = other});
  auto one = process_with_headers();
  const Digest key = *one->key_of(unit(1));
  ASSERT_NE(*external->key_of(unit(1)), key) << "the compiler is not in the key";
  forge(*one, key, read_text(external->file_of(*external->key_of(unit(1)))));
  expect_dropped_and_rebuilt(*one, "rejected", "of another NVRTC");
}

TEST_F(PchFiles, RejectsAndRebuildsFileWithOtherHeapAddress) {
  auto one = process_with_headers();
  const std::string file = directory_.path("elsewhere.pch");
  fs::current_path(directory_.path("here"));
  ASSERT_TRUE(BareNvrtc().compile(toolkit_nvrtc(), unit(1).with_option("--create-pch=" + file), Target::sm(80)).ok);
  fs::current_path("/");
  forge(*one, *one->key_of(unit(1)), read_text(file));
  expect_dropped_and_rebuilt(*one, "rejected", "created with another heap address");
}

TEST_F(PchFiles, RejectsAndRebuildsFileOfOtherOptions) {
  auto one = process_with_headers();
  const Unit other = unit(1).with_option("-DOTHER");
  one->expect_queued_similar(other);
  ASSERT_TRUE(one->compile(other).has_value());
  forge(*one, *one->key_of(unit(1)), read_text(one->file_of(*one->key_of(other))));
  expect_dropped_and_rebuilt(*one, "rejected", "of other options");
}

TEST_F(PchFiles, RebuildsTruncatedFile) {
  auto one = process_with_headers();
  const std::string file = one->file_of(*one->key_of(unit(1)));
  fs::resize_file(file, fs::file_size(file) / 2);
  expect_dropped_and_rebuilt(*one, "another size", "cut short");
}

TEST_F(PchFiles, TruncatedFileWithMatchingDescriptionCostsAtMostOneWorker) {
  auto one = process_with_headers();
  const std::string bytes = read_text(one->file_of(*one->key_of(unit(1))));
  forge(*one, *one->key_of(unit(1)), bytes.substr(0, bytes.size() / 2));
  expect_dropped_and_rebuilt(*one, "", "cut short, and described so");
  std::printf("figure: it cost %zu workers\n", one->events.count(Event::Kind::WorkerLost));
  EXPECT_LE(one->events.count(Event::Kind::WorkerLost), 1U);
}

TEST_F(PchFiles, RebuildsFileWithFlippedByte) {
  auto maker = process_with_headers();
  const std::string file = maker->file_of(*maker->key_of(unit(1)));
  const std::string bytes = read_text(file);
  for (const std::size_t at : {std::size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
    auto one = process();  // each process counts the rejections
    std::string corrupt = read_text(file);
    corrupt[at] = static_cast<char>(corrupt[at] ^ 1);
    write_text(file, corrupt);
    expect_dropped_and_rebuilt(*one, "corrupt", "with byte " + std::to_string(at) + " flipped");
  }
}

TEST_F(PchFiles, RebuildsMissingFile) {
  auto one = process_with_headers();
  fs::remove(one->file_of(*one->key_of(unit(1))));
  expect_dropped_and_rebuilt(*one, "missing", "without its large file");
}

TEST_F(PchFiles, RebuildsFileWithCorruptDescription) {
  auto one = process_with_headers();
  const std::string file = one->file_of(*one->key_of(unit(1)), ".kpch");
  std::string corrupt = read_text(file);
  corrupt[corrupt.size() / 2] = static_cast<char>(corrupt[corrupt.size() / 2] ^ 1);
  write_text(file, corrupt);
  expect_dropped_and_rebuilt(*one, "checksum", "with a corrupt description");
}

TEST_F(PchFiles, RejectsFileRemovedBeforeWorkerOpensIt) {
  auto one = process_with_headers();
  const Recipe recipe = one->recipe(warned());
  PchManager::PchPlan plan = one->headers().plan(recipe, *one->key_of(warned()), {});
  ASSERT_EQ(plan.order.mode, PchRequest::Mode::Use);
  fs::remove(plan.order.path);
  auto lease = one->pool().take({"", {}, {}, Urgency(true)}, {});
  ASSERT_TRUE(lease.has_value());
  const Worker::Exchange talk = lease->worker().request(WorkerJob{recipe, plan.order}, std::chrono::minutes(1), {});
  ASSERT_EQ(talk.end, Worker::Exchange::Outcome::Answered);
  auto reply = decode_reply(talk.answer);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->pch.outcome, PchResult::Outcome::Rejected);
  (void)one->headers().finish(plan, recipe, *reply, {});
  EXPECT_EQ(one->dropped(), 1U);
  EXPECT_EQ(std::string(reply->compiled.artifact.bytes.view()), truth(*one, warned()).bytes);
}

// strace lets the worker's own check of the file succeed and fails that of the compiler.
TEST_F(PchFiles, DropsFileRemovedBeforeCompilerOpensIt) {
  if (access("/usr/bin/strace", X_OK) != 0) GTEST_SKIP() << "needs strace, which injects the error";
  auto maker = process_with_headers();
  const std::string file = maker->file_of(*maker->key_of(unit(1)));
  write_text(directory_.path("worker"), "#!/bin/sh\nexec strace -D -f -o '" + directory_.path("trace") + "' -P '" +
                                            file + "' -e trace=openat -e inject=openat:error=ENOENT:when=2+ '" +
                                            find_worker({}) + "' \"$@\"\n");
  fs::permissions(directory_.path("worker"), fs::perms(0755));
  auto one = process({.directory = directory_.path("cache"), .worker = directory_.path("worker")});
  const Seen seen(one->compile(warned()));
  EXPECT_NE(read_text(directory_.path("trace")).find("INJECTED"), std::string::npos) << "no error was injected";
  EXPECT_EQ(one->dropped(), 1U);
  EXPECT_EQ(one->used(), 0U);
  auto plain = process({.directory = directory_.path("plain"), .headers = false});
  expect_same(seen, Seen(plain->compile(warned())), "removed at the last moment");
  auto next = process();
  next->expect_queued_similar(warned());
  ASSERT_TRUE(next->compile(warned()).has_value());
  EXPECT_EQ(next->kept(), 1U) << "it was not created again";
  std::printf("figure: precompiled header removed before NVRTC opened it: dropped ('%s'), artifact right\n",
              one->dropped_reason().c_str());
}

TEST_F(PchFiles, DisabledIfHeapAddressIsTaken) {
  expect_unavailable(KILN_HEAP_ADDRESS_BLOCKER);
  std::printf("figure: heap address taken: full compiles, pch_unavailable emitted once, artifacts right\n");
}

TEST_F(PchFiles, DisabledIfKernelTreatsAddressAsHint) {
  expect_unavailable(KILN_OLD_KERNEL ":" KILN_HEAP_ADDRESS_BLOCKER);
}

// NVRTC's variable sets the initial size of its heap; the worker then does not choose one.
TEST_F(PchFiles, HeapGrowsIfItIsTooSmall) {
  write_text(directory_.path("worker"),
             "#!/bin/sh\nNVRTC_PCH_HEAP_SIZE=2000000 exec '" + find_worker({}) + "' \"$@\"\n");
  fs::permissions(directory_.path("worker"), fs::perms(0755));
  auto maker = process({.directory = directory_.path("cache"), .worker = directory_.path("worker")});
  auto plain = process({.directory = directory_.path("plain"), .headers = false});
  const Seen truth(plain->compile(warned()));
  maker->expect_queued_similar(warned());
  expect_same(truth, Seen(maker->compile(warned())), "creating with a heap that is too small");
  EXPECT_EQ(maker->kept(), 1U);
  expect_same(truth, Seen(maker->compile(warned())), "using it with the same heap");
  EXPECT_EQ(maker->used(), 1U);
  auto large = process();
  expect_same(truth, Seen(large->compile(warned())), "using it with a larger heap");
  EXPECT_EQ(large->used(), 1U);
  auto small = process({.directory = directory_.path("cache"), .worker = directory_.path("worker")});
  expect_same(truth, Seen(small->compile(warned())), "using it with a heap that is too small");
  EXPECT_EQ(small->used(), 1U);
  EXPECT_EQ(maker->dropped() + large->dropped() + small->dropped(), 0U);
}

TEST_F(PchFiles, EvictsLeastRecentlyUsedAboveLimit) {
  auto measure = process_with_headers({.directory = directory_.path("measure")});
  const std::uint64_t size = fs::file_size(measure->file_of(*measure->key_of(unit(1))));
  auto one = process({.max_bytes = size * 5 / 2});
  const auto family = [&](int number) { return unit(1).with_option("-DFAMILY=" + std::to_string(number)); };
  for (int i = 0; i < 4; ++i) {
    one->expect_queued_similar(family(i));
    ASSERT_TRUE(one->compile(family(i)).has_value());
    EXPECT_LE(one->pch_cache().usage().bytes, size * 5 / 2) << i;
  }
  EXPECT_EQ(one->kept(), 4U);
  EXPECT_FALSE(fs::exists(one->file_of(*one->key_of(family(0)))));
  EXPECT_TRUE(fs::exists(one->file_of(*one->key_of(family(3)))));
  std::printf("figure: precompiled headers of these small units take %.1f MB each\n", static_cast<double>(size) / 1e6);
}

TEST_F(PchFiles, DoesNotStoreFileLargerThanLimit) {
  auto one = process({.max_bytes = 4096});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(one->compile(unit(i)).has_value());
  EXPECT_EQ(one->kept() + one->used(), 0U);
  EXPECT_EQ(one->pch_cache().usage().files, 0U);
  const auto said = one->events.of(Event::Kind::PchUnavailable);
  ASSERT_EQ(said.size(), 1U) << "it is attempted only once";
  EXPECT_NE(said[0].message.find("KILN_PCH_MAX_SIZE"), std::string::npos) << said[0].message;
  // Another process does not pay for the attempt again. It reports the reason once.
  auto next = process({.max_bytes = 4096});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(next->compile(unit(i)).has_value());
  const auto remembered = next->events.of(Event::Kind::PchUnavailable);
  ASSERT_EQ(remembered.size(), 1U);
  EXPECT_EQ(remembered[0].message.find("not created: an attempt on this host failed"), 0U) << remembered[0].message;
  EXPECT_NE(remembered[0].message.find("KILN_PCH_MAX_SIZE"), std::string::npos) << remembered[0].message;
  // With another limit it is tried again.
  auto larger = process();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(larger->compile(unit(i)).has_value());
  EXPECT_EQ(larger->kept(), 1U);
}

TEST_F(PchFiles, StoredFailureIsForgottenInTheSameProcess) {
  using namespace std::chrono_literals;
  auto one = process();
  const Digest failure =
      pch_failure_key(*one->key_of(unit(1)), one->pch_cache().options().max_bytes, PchProcess::kWorkerMemory);
  const auto made = system_clock().wall() - 24h + 4s;
  ASSERT_TRUE(one->pch_cache().publish_verdict(failure, {PchVerdict::Kind::Rejected, "a full disk", made}).has_value());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(one->compile(unit(i)).has_value());
  EXPECT_EQ(one->events.count(Event::Kind::PchUnavailable), 1U);
  EXPECT_EQ(one->kept(), 0U);
  std::this_thread::sleep_for(made + 24h - system_clock().wall() + 100ms);
  ASSERT_TRUE(one->compile(unit(1)).has_value());
  EXPECT_EQ(one->kept(), 1U);
}

TEST_F(PchFiles, TwoCreationsThatCrashAreRemembered) {
  auto one = process_with_headers();
  const Unit other = unit(1).with_option("-DOTHER");
  one->expect_queued_similar(other);
  const auto mode = [&](PchProcess& by, bool crashes) {
    const PchManager::PchPlan plan = by.headers().plan(by.recipe(other), *by.key_of(other), {});
    if (crashes) by.headers().invalidate(plan, by.recipe(other), {});
    return plan.order.mode;
  };
  for (int i = 0; i < 2; ++i) EXPECT_EQ(mode(*one, true), PchRequest::Mode::Create) << i;
  EXPECT_EQ(mode(*one, false), PchRequest::Mode::None);
  auto next = process();
  EXPECT_EQ(mode(*next, false), PchRequest::Mode::None);
  const auto said = next->events.of(Event::Kind::PchUnavailable);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].message.find("crashed"), std::string::npos) << said[0].message;
}

TEST_F(PchFiles, CreationThatTheLibraryRejectsIsNotRepeated) {
  auto one = process_with_headers();
  const Unit other = unit(1).with_option("-DOTHER");
  const Recipe recipe = one->recipe(other);
  one->expect_queued_similar(other);
  {
    PchManager::PchPlan plan = one->headers().plan(recipe, *one->key_of(other), {});
    ASSERT_EQ(plan.order.mode, PchRequest::Mode::Create);
    WorkerReply reply;
    reply.pch = {PchResult::Outcome::Rejected, "a full disk"};
    (void)one->headers().finish(plan, recipe, reply, {});
  }
  EXPECT_EQ(one->headers().plan(recipe, *one->key_of(other), {}).order.mode, PchRequest::Mode::None);
  const auto said = one->events.of(Event::Kind::PchUnavailable);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].message, "not stored: a full disk");
}

TEST_F(PchFiles, NotCreatedAgainAfterTwoRejections) {
  auto one = process_with_headers();
  const std::string file = one->file_of(*one->key_of(unit(1)));
  const auto corrupt = [&] {
    std::string bytes = read_text(file);
    bytes[0] = static_cast<char>(bytes[0] ^ 1);
    write_text(file, bytes);
  };
  corrupt();
  expect_dropped_and_rebuilt(*one, "corrupt", "corrupt for the first time");
  corrupt();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(one->compile(unit(i)).has_value());
  EXPECT_EQ(one->dropped(), 2U);
  EXPECT_EQ(one->kept(), 2U);
  const auto said = one->events.of(Event::Kind::PchUnavailable);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].message.find("the file is corrupt"), std::string::npos) << said[0].message;
}

}  // namespace
}  // namespace kiln::test
