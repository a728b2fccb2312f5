// What can happen to a precompiled header's file: it is noticed, said, and costs one full compile; the artifact is
// right and the next compile makes the file anew.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/hash.hpp"
#include "property/bare_nvrtc.hpp"
#include "support/pch_fixture.hpp"
#include "support/sanitizer.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class PchFiles : public PchTest {
 protected:
  // A unit that makes the compiler warn of something of its own: what it says must not change either.
  Unit warned() const {
    return unit(3, "#include <wide.h>\n__device__ int f(unsigned x) { int unused; return x < 0 ? 1 : 2; }\n");
  }

  // Puts other bytes under the key, with a description that fits them.
  static void forge(PchProcess& one, const Digest& key, const std::string& bytes) {
    ASSERT_FALSE(bytes.empty());
    PchShelf shelf = one.shelf();
    auto pch = shelf.find(key);
    ASSERT_TRUE(pch.has_value());
    const auto making = shelf.begin(key);
    ASSERT_NE(making, nullptr);
    spit(making->path(), bytes);
    pch->size = bytes.size();
    pch->checksum = xxh3(as_bytes(bytes));
    ASSERT_TRUE(making->publish(*pch).ok());
  }

  // The next compile says that it was dropped, and why, and is right; the one after that has made it anew.
  void expect_dropped_and_rebuilt(PchProcess& one, const std::string& why, const std::string& what) {
    SCOPED_TRACE(what);
    const std::size_t kept = one.kept();
    const std::size_t used = one.used();
    const std::size_t dropped = one.dropped();
    auto plain = process({.folder = folder_.path("plain"), .headers = false});
    const Seen truth(plain->compile(warned()));
    ASSERT_TRUE(truth.ok && !truth.log.empty()) << truth.log;
    expect_same(truth, Seen(one.compile(warned())), "the compile that finds out");
    EXPECT_EQ(one.dropped(), dropped + 1);
    EXPECT_NE(one.why_dropped().find(why), std::string::npos) << one.why_dropped();
    EXPECT_EQ(one.used(), used);
    expect_same(truth, Seen(one.compile(warned())), "the next compile");
    EXPECT_EQ(one.kept(), kept + 1) << "it was not made anew";
    expect_same(truth, Seen(one.compile(warned())), "the one after that");
    EXPECT_GE(one.used(), used + 1);
    EXPECT_EQ(one.dropped(), dropped + 1);
    std::printf("figure: precompiled header %s: dropped ('%s'), artifact right, made anew\n", what.c_str(),
                one.why_dropped().c_str());
  }
};

TEST_F(PchFiles, OfAnotherNvrtcIsRefusedAndRebuilt) {
  const std::string other = package_nvrtc(KILN_SOURCE_DIR);
  if (other.empty()) GTEST_SKIP() << "no second NVRTC in .venv: run tools/setup.sh";
  if (kAddressSanitizer) GTEST_SKIP() << "the package's NVRTC does not find its builtins under this sanitizer";
  auto foreign = process_with_headers({.folder = folder_.path("foreign"), .nvrtc = other});
  auto one = process_with_headers();
  const Digest key = *one->key_of(unit(1));
  ASSERT_NE(*foreign->key_of(unit(1)), key) << "the compiler is not in the key";
  forge(*one, key, slurp(foreign->file_of(*foreign->key_of(unit(1)))));
  expect_dropped_and_rebuilt(*one, "refused", "of another NVRTC");
}

TEST_F(PchFiles, MadeWithTheHeapElsewhereIsRefusedAndRebuilt) {
  auto one = process_with_headers();
  const std::string file = folder_.path("elsewhere.pch");
  fs::current_path(folder_.path("here"));
  ASSERT_TRUE(BareNvrtc().compile(toolkit_nvrtc(), unit(1).option("--create-pch=" + file), Target::sm(80)).ok);
  fs::current_path("/");
  forge(*one, *one->key_of(unit(1)), slurp(file));
  expect_dropped_and_rebuilt(*one, "refused", "made with the heap elsewhere");
}

TEST_F(PchFiles, OfOtherOptionsIsRefusedAndRebuilt) {
  auto one = process_with_headers();
  const Unit other = unit(1).option("-DOTHER");
  one->expect_company(other);
  ASSERT_TRUE(one->compile(other).ok());
  forge(*one, *one->key_of(unit(1)), slurp(one->file_of(*one->key_of(other))));
  expect_dropped_and_rebuilt(*one, "refused", "of other options");
}

TEST_F(PchFiles, CutShortIsDroppedAndRebuilt) {
  auto one = process_with_headers();
  const std::string file = one->file_of(*one->key_of(unit(1)));
  fs::resize_file(file, fs::file_size(file) / 2);
  expect_dropped_and_rebuilt(*one, "another size", "cut short");
}

TEST_F(PchFiles, CutShortUnderADescriptionThatFitsCostsAtMostAWorker) {
  auto one = process_with_headers();
  const std::string bytes = slurp(one->file_of(*one->key_of(unit(1))));
  forge(*one, *one->key_of(unit(1)), bytes.substr(0, bytes.size() / 2));
  expect_dropped_and_rebuilt(*one, "", "cut short, and described so");
  std::printf("figure: it cost %zu workers\n", one->events.count(Event::Kind::WorkerLost));
  EXPECT_LE(one->events.count(Event::Kind::WorkerLost), 1U);
}

TEST_F(PchFiles, WithOneByteFlippedIsDroppedAndRebuilt) {
  auto one = process_with_headers();
  const std::string file = one->file_of(*one->key_of(unit(1)));
  const std::string bytes = slurp(file);
  for (const std::size_t at : {std::size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
    std::string damaged = slurp(file);
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    spit(file, damaged);
    expect_dropped_and_rebuilt(*one, "damaged", "with byte " + std::to_string(at) + " flipped");
  }
}

TEST_F(PchFiles, ThatIsNotThereIsDroppedAndRebuilt) {
  auto one = process_with_headers();
  fs::remove(one->file_of(*one->key_of(unit(1))));
  expect_dropped_and_rebuilt(*one, "gone", "without its large file");
}

TEST_F(PchFiles, WithADamagedDescriptionIsDroppedAndRebuilt) {
  auto one = process_with_headers();
  const std::string file = one->file_of(*one->key_of(unit(1)), ".kpch");
  std::string damaged = slurp(file);
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  spit(file, damaged);
  expect_dropped_and_rebuilt(*one, "checksum", "with a damaged description");
}

TEST_F(PchFiles, TakenAwayBetweenTheCheckAndTheWorkerIsRefused) {
  auto one = process_with_headers();
  const Recipe recipe = one->recipe(warned());
  PrecompiledHeaders::Plan plan = one->headers().plan(recipe, *one->key_of(warned()));
  ASSERT_EQ(plan.order.mode, PchOrder::Mode::Use);
  fs::remove(plan.order.path);
  auto lease = one->pool().take({"", {}, {}, true}, {});
  ASSERT_TRUE(lease.ok());
  const Worker::Talk talk = lease->worker().ask(frame_of(WorkerJob{recipe, plan.order}), std::chrono::minutes(1), {});
  ASSERT_EQ(talk.end, Worker::Talk::End::Answered);
  auto reply = decode_reply(talk.answer);
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->pch.outcome, PchReport::Outcome::Refused);
  (void)one->headers().settle(plan, recipe, *reply);
  EXPECT_EQ(one->dropped(), 1U);
  EXPECT_EQ(std::string(reply->compiled.artifact.bytes.view()), truth(*one, warned()).bytes);
}

// strace lets the worker's own look at the file succeed and fails the compiler's.
TEST_F(PchFiles, TakenAwayBetweenTheWorkersCheckAndTheCompilersLookIsDropped) {
  if (access("/usr/bin/strace", X_OK) != 0) GTEST_SKIP() << "no strace, which injects the error";
  auto maker = process_with_headers();
  const std::string file = maker->file_of(*maker->key_of(unit(1)));
  spit(folder_.path("worker"), "#!/bin/sh\nexec strace -D -f -o '" + folder_.path("trace") + "' -P '" + file +
                                   "' -e trace=openat -e inject=openat:error=ENOENT:when=2+ '" + find_worker({}) +
                                   "' \"$@\"\n");
  fs::permissions(folder_.path("worker"), fs::perms(0755));
  auto one = process({.folder = folder_.path("cache"), .worker = folder_.path("worker")});
  const Seen seen(one->compile(warned()));
  EXPECT_NE(slurp(folder_.path("trace")).find("INJECTED"), std::string::npos) << "nothing was injected";
  EXPECT_EQ(one->dropped(), 1U);
  EXPECT_EQ(one->used(), 0U);
  auto plain = process({.folder = folder_.path("plain"), .headers = false});
  expect_same(seen, Seen(plain->compile(warned())), "taken away at the last moment");
  auto next = process();
  next->expect_company(warned());
  ASSERT_TRUE(next->compile(warned()).ok());
  EXPECT_EQ(next->kept(), 1U) << "it was not made anew";
  std::printf("figure: precompiled header taken away before NVRTC opened it: dropped ('%s'), artifact right\n",
              one->why_dropped().c_str());
}

TEST_F(PchFiles, AreNeitherMadeNorUsedWhereTheHeapsAddressIsTaken) {
  auto maker = process_with_headers();
  spit(folder_.path("worker"),
       "#!/bin/sh\nLD_PRELOAD='" KILN_HEAP_SQUATTER "' exec '" + find_worker({}) + "' \"$@\"\n");
  fs::permissions(folder_.path("worker"), fs::perms(0755));
  auto plain = process({.folder = folder_.path("plain"), .headers = false});
  const Seen truth(plain->compile(warned()));
  for (const char* folder : {"cache", "empty"}) {
    auto one = process({.folder = folder_.path(folder), .worker = folder_.path("worker")});
    one->expect_company(warned());
    for (int i = 0; i < 3; ++i) expect_same(truth, Seen(one->compile(warned())), folder);
    EXPECT_EQ(one->kept() + one->used() + one->dropped(), 0U);
    EXPECT_EQ(one->events.count(Event::Kind::HeadersUnavailable), 1U) << "it is said once";
    EXPECT_EQ(one->events.count(Event::Kind::WorkerLost), 0U);
  }
  EXPECT_TRUE(fs::exists(maker->file_of(*maker->key_of(unit(1))))) << "others can still use it";
  std::printf("figure: the heap's address taken: full compiles, headers_unavailable said once, artifacts right\n");
}

TEST_F(PchFiles, ThatPassTheBoundGoLeastRecentlyUsedFirst) {
  auto measure = process_with_headers({.folder = folder_.path("measure")});
  const std::uint64_t size = fs::file_size(measure->file_of(*measure->key_of(unit(1))));
  auto one = process({.size_bound = size * 5 / 2});
  const auto family = [&](int number) { return unit(1).option("-DFAMILY=" + std::to_string(number)); };
  for (int i = 0; i < 4; ++i) {
    one->expect_company(family(i));
    ASSERT_TRUE(one->compile(family(i)).ok());
    EXPECT_LE(one->shelf().usage().bytes, size * 5 / 2) << i;
  }
  EXPECT_EQ(one->kept(), 4U);
  EXPECT_FALSE(fs::exists(one->file_of(*one->key_of(family(0)))));
  EXPECT_TRUE(fs::exists(one->file_of(*one->key_of(family(3)))));
  std::printf("figure: precompiled headers of these small units take %.1f MB each\n", static_cast<double>(size) / 1e6);
}

TEST_F(PchFiles, ThatPassTheBoundAloneAreNotKept) {
  auto one = process({.size_bound = 4096});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(one->compile(unit(i)).ok());
  EXPECT_EQ(one->kept() + one->used(), 0U);
  EXPECT_EQ(one->shelf().usage().files, 0U);
  const auto said = one->events.of(Event::Kind::HeadersUnavailable);
  ASSERT_EQ(said.size(), 2U) << "it is tried twice and then left";
  EXPECT_NE(said[0].message.find("KILN_PCH_MAX_SIZE"), std::string::npos) << said[0].message;
}

}  // namespace
}  // namespace kiln::test
