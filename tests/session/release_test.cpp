// SPDX-License-Identifier: Apache-2.0
// Refreshing and releasing units of a session, with kernels in the driver double.
#include <kiln/cuda.hpp>
#include <kiln/session.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>
#include <type_traits>
#include <vector>

#include "support/fakes/cuda_driver/control.hpp"
#include "support/fakes/fake_cubin.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/processes/child.hpp"
#include "support/processes/eventually.hpp"

namespace kiln::test {
namespace {

using std::chrono::seconds;

// What would refer to a temporary does not compile.
static_assert(std::is_constructible_v<KernelRef, const Kernel&>);
static_assert(!std::is_constructible_v<KernelRef, Kernel>);
static_assert(std::is_constructible_v<Wait, seconds, const std::function<bool()>&>);
static_assert(!std::is_constructible_v<Wait, seconds, std::function<bool()>>);

TEST(Wait, TakesEveryDuration) {
  EXPECT_EQ(Wait(std::chrono::duration<double>(2.5)).timeout(), std::chrono::milliseconds(2500));
  EXPECT_EQ(Wait(std::chrono::hours::max()).timeout(), kForever);
  EXPECT_EQ(Wait(kForever).timeout(), kForever);
  EXPECT_EQ(Wait(std::chrono::hours::min()).timeout(), seconds(0));
}

class SessionRelease : public testing::Test {
 protected:
  Session open() {
    SessionOptions options;
    options.settings = {{"cache.dir", directory_.path("cache")}, {"driver", FakeCudaDriver::path()}};
    if (!caches_) options.settings["cache"] = "off";
    options.on_event = log_.callback();
    Session session = Session::open(options).value();
    EXPECT_TRUE(session.make_current(Backend::Cuda, 0).has_value());
    return session;
  }
  /// Writes another content to the header that units include.
  void write_header(const std::string& text) {
    write_text(directory_.path("header.h"), text);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // longer than a tick of the file system's clock
  }
  Unit including(const std::string& name = "unit.cu") const { return compiler_.including(name, directory_.path()); }
  static Status launch(const KernelRef& kernel) { return kernel.launch({Grid(1), Block(1), cuda::default_stream}); }
  static std::string bytes_of(Session& session, const Unit& unit) {
    const auto artifact = session.artifact(unit, Target::sm(80), seconds(60));
    return artifact ? std::string(artifact->bytes.view()) : artifact.error().message;
  }
  std::size_t unloads() { return driver_.calls("cuLibraryUnload"); }
  std::size_t count(Event::Kind kind) { return log_.count(kind); }

  bool caches_ = true;
  TemporaryDirectory directory_;
  EventLog log_;
  FakeCudaDriver driver_{"sm_80"};
  CubinCompiler compiler_;
};

TEST_F(SessionRelease, RefreshWithoutChangesKeepsKernel) {
  write_header("// one");
  Session session = open();
  const Kernel before = session.get(including(), "one", seconds(60)).value();
  session.refresh({including()});
  EXPECT_FALSE(session.handle(including(), "one").ready());
  const Kernel after = session.get(including(), "one", seconds(60)).value();
  EXPECT_EQ(after.native(), before.native());
  EXPECT_EQ(count(Event::Kind::Compiled), 1U);
  EXPECT_EQ(count(Event::Kind::Loaded), 1U);
  EXPECT_TRUE(session.handle(including(), "one").ready());
}

TEST_F(SessionRelease, RefreshWithoutCacheDetectsThatNothingChanged) {
  write_header("// one");
  caches_ = false;
  Session session = open();
  const Kernel before = session.get(including(), "one", seconds(60)).value();
  session.refresh({including()});
  EXPECT_EQ(session.get(including(), "one", seconds(60)).value().native(), before.native());
  EXPECT_EQ(count(Event::Kind::Compiled), 1U);
  write_header("// two");
  session.refresh({including()});
  EXPECT_NE(session.get(including(), "one", seconds(60)).value().native(), before.native());
}

TEST_F(SessionRelease, ChangedHeaderGivesNewCodeAfterRefresh) {
  write_header("// one");
  Session session = open();
  const KernelHandle handle = session.handle(including(), "one");
  const Kernel before = handle.get(seconds(60)).value();
  write_header("// two");
  EXPECT_EQ(session.get(including(), "one", seconds(60)).value().native(), before.native())
      << "the unit was not refreshed";
  session.refresh({including()});
  const Kernel after = session.get(including(), "one", seconds(60)).value();
  EXPECT_NE(after.native(), before.native());
  EXPECT_EQ(handle.get(seconds(60)).value().native(), after.native());
  EXPECT_EQ(session.handle(including(), "one").get(seconds(60)).value().native(), after.native());
  EXPECT_TRUE(launch(before).has_value()) << "the old kernel stays usable";
  EXPECT_TRUE(launch(after).has_value());
  EXPECT_EQ(count(Event::Kind::Compiled), 2U);
  EXPECT_TRUE(bytes_of(session, including()).ends_with("// two"));
}

TEST_F(SessionRelease, RequestAfterRefreshMakesUnitReady) {
  static Unit needed = Unit::cuda("none", "");
  write_header("// one");
  needed = including();
  static const Requirements requirements("test", [] { return Units{needed}; });
  Session session = open();
  session.request(requirements);
  ASSERT_TRUE(session.get(including(), "one", seconds(60)).has_value());
  write_header("// two");
  session.refresh({including()});
  session.request(requirements);
  EXPECT_TRUE(eventually([&] { return count(Event::Kind::Compiled) == 2; }));
}

TEST_F(SessionRelease, ReleaseUnloadsAndRemovesUnit) {
  Session session = open();
  const Unit unit = compiler_.unit("unit.cu");
  ASSERT_TRUE(session.get(unit, "one", seconds(60)).has_value());
  ASSERT_TRUE(session.get(compiler_.unit("other.cu"), "one", seconds(60)).has_value());
  session.release({compiler_.unit("unit.cu")});
  EXPECT_EQ(unloads(), 1U);
  EXPECT_EQ(session.status().submitted, 1U);
  EXPECT_EQ(session.status().released, 1U);
  const Kernel again = session.get(unit, "one", seconds(60)).value();
  EXPECT_TRUE(launch(again).has_value());
  EXPECT_EQ(count(Event::Kind::Compiled), 2U) << "the cache still has it";
  EXPECT_EQ(count(Event::Kind::Loaded), 3U);
}

TEST_F(SessionRelease, HandleKeepsKernelAfterRelease) {
  Session session = open();
  const Unit unit = compiler_.unit("unit.cu");
  {
    const KernelHandle handle = session.handle(unit, "one");
    const Kernel kernel = handle.get(seconds(60)).value();
    session.release({unit});
    EXPECT_EQ(unloads(), 0U);
    EXPECT_TRUE(launch(kernel).has_value());
    EXPECT_EQ(handle.get(seconds(60)).value().native(), kernel.native());
    const Kernel fresh = session.get(unit, "one", seconds(60)).value();
    EXPECT_NE(fresh.native(), kernel.native()) << "a later get loads the unit again";
  }
  EXPECT_EQ(unloads(), 1U) << "the last handle was destroyed";
}

TEST_F(SessionRelease, KernelWithoutHandleSurvivesRelease) {
  Session session = open();
  const Unit unit = compiler_.unit("unit.cu");
  std::optional<Kernel> kernel = session.get(unit, "one", seconds(60)).value();
  std::optional<Kernel> copy = session.try_get(unit, "one");
  ASSERT_TRUE(copy.has_value());
  session.release({unit});
  EXPECT_FALSE(session.try_get(unit, "one").has_value());
  kernel.reset();
  EXPECT_EQ(unloads(), 0U);
  EXPECT_TRUE(launch(*copy).has_value());
  copy.reset();
  EXPECT_EQ(unloads(), 1U) << "the last kernel was destroyed";
}

TEST_F(SessionRelease, KernelSurvivesHandleSessionAndRefresh) {
  write_header("// one");
  std::optional<Kernel> old;
  std::optional<Kernel> current;
  {
    Session session = open();
    old = session.handle(including(), "one").get(seconds(60)).value();
    write_header("// two");
    session.refresh({including()});
    current = session.get(including(), "one", seconds(60)).value();
  }
  EXPECT_NE(old->native(), current->native());
  EXPECT_EQ(cuda::native(*old), old->native());
  EXPECT_TRUE(launch(*old).has_value());
  EXPECT_TRUE(launch(*current).has_value());
  EXPECT_EQ(current->name(), "one");
  old.reset();
  EXPECT_TRUE(launch(*current).has_value());
  EXPECT_EQ(unloads(), 0U);
  current.reset();
  EXPECT_EQ(unloads(), 2U) << "the session ended with its last kernel";
}

TEST_F(SessionRelease, SessionEndsWithItsLastCopyIfNoKernelIsUsed) {
  std::optional<Session> session = open();
  const Unit unit = compiler_.unit("unit.cu");
  EXPECT_TRUE(launch(session->get(unit, "one", seconds(60)).value()).has_value());
  EXPECT_TRUE(session->try_get(unit, "one").has_value()) << "the table keeps the kernel for the next call";
  std::optional<Session> copy = session;
  session.reset();
  EXPECT_TRUE(copy->try_get(unit, "one").has_value());
  EXPECT_EQ(unloads(), 0U);
  copy.reset();
  EXPECT_EQ(unloads(), 1U);
}

TEST_F(SessionRelease, TryGetIsEmptyUntilKernelIsReady) {
  Session session = open();
  const KernelHandle handle = session.handle(compiler_.unit("unit.cu"), "one");
  EXPECT_FALSE(handle.try_get_ref().has_value());
  EXPECT_FALSE(handle.try_get().has_value());
  const Kernel kernel = handle.get(seconds(60)).value();
  ASSERT_TRUE(handle.try_get_ref().has_value());
  EXPECT_EQ(handle.try_get_ref()->native(), kernel.native());
  EXPECT_TRUE(launch(*handle.try_get_ref()).has_value());
  EXPECT_EQ(handle.try_get()->native(), kernel.native());
}

TEST_F(SessionRelease, BytesOfLoadedUnitAreAvailable) {
  Session session = open();
  const Unit unit = compiler_.unit("unit.cu", "some bytes");
  ASSERT_TRUE(session.get(unit, "one", seconds(60)).has_value());
  EXPECT_EQ(bytes_of(session, unit), unit.source());
  EXPECT_EQ(count(Event::Kind::Compiled), 1U);
  EXPECT_EQ(session.status().submitted, 1U);
  EXPECT_TRUE(session.get(unit, "one", seconds(60)).has_value());
  EXPECT_EQ(count(Event::Kind::Loaded), 1U);
}

TEST_F(SessionRelease, DroppedBytesAreLookedUpForReload) {
  Session session = open();
  // Equal code from two directories has one key: releasing one unit unloads it for the other, whose bytes were dropped.
  write_header("// one");
  TemporaryDirectory elsewhere;
  write_text(elsewhere.path("header.h"), "// one");
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const Unit here = including();
  const Unit there = compiler_.including("unit.cu", elsewhere.path());
  ASSERT_TRUE(session.get(here, "one", seconds(60)).has_value());
  session.request({there});
  ASSERT_TRUE(eventually([&] { return session.status().pending == 0 && session.status().submitted == 2; }));
  EXPECT_EQ(count(Event::Kind::Compiled), 1U);
  session.release({here});
  const auto kernel = session.get(there, "one", seconds(60));
  ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
  EXPECT_TRUE(launch(*kernel).has_value());
}

TEST_F(SessionRelease, ReleasedRequirementsCanBeRequestedAgain) {
  static Unit needed = Unit::cuda("none", "");
  needed = compiler_.unit("needed.cu");
  static const Requirements requirements("test", [] { return Units{needed}; });
  Session session = open();
  session.request(requirements);
  session.release({needed});
  session.request(requirements);
  EXPECT_TRUE(eventually([&] {
    const SessionStatus status = session.status();
    return status.submitted == 1 && status.cached + status.compiled == 1;
  }));
}

TEST_F(SessionRelease, ForkedChildHasNoReleasedKernel) {
  Session session = open();
  const Unit unit = compiler_.unit("unit.cu");
  const KernelHandle handle = session.handle(unit, "one");
  ASSERT_TRUE(handle.get(seconds(60)).has_value());
  session.release({unit});
  EXPECT_TRUE(handle.ready());
  EXPECT_EQ(run_in_child([&] { return handle.ready() ? 1 : 0; }), 0);
}

// The sanitizers detect errors.
TEST_F(SessionRelease, KernelsOfOtherThreadsSurviveReleaseAndRefresh) {
  Session session = open();
  std::vector<Unit> units;
  for (int i = 0; i < 3; ++i) units.push_back(compiler_.unit("unit" + std::to_string(i) + ".cu"));
  std::atomic<bool> done{false};
  std::atomic<int> launched{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      ASSERT_TRUE(session.make_current(Backend::Cuda, 0).has_value());
      for (std::size_t n = t; !done; ++n) {
        const Unit& unit = units[n % units.size()];
        const auto kernel =
            t == 0 ? session.handle(unit, "one").get(seconds(60)) : session.get(unit, "one", seconds(60));
        if (!kernel) {
          EXPECT_EQ(kernel.error().code, Code::Cancelled) << kernel.error().message;
          continue;
        }
        EXPECT_TRUE(launch(*kernel).has_value());
        ++launched;
        (void)session.status();
      }
    });
  }
  for (std::size_t n = 0; n < 200 || launched < 50; ++n) {
    const Units one = {units[n % units.size()]};
    if (n % 2 == 0) session.release(one);
    if (n % 2 == 1) session.refresh(one);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // a release cancels the compile that a get waits for
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace kiln::test
