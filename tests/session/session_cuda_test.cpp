// SPDX-License-Identifier: Apache-2.0
// Sessions with CUDA units, really compiled by NVRTC and loaded into the driver double, which runs no device code.
#include <kiln/cuda.hpp>
#include <kiln/session.hpp>
#include <kiln/stream.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "session/access.hpp"
#include "support/fakes/cuda_driver/control.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/toolkit.hpp"

namespace kiln::test {
namespace {

using cuda::DriverResult;
using std::chrono::seconds;

Unit saxpy() {
  return Unit::cuda("saxpy.cu", repository_text("examples/kernels/saxpy.cu"))
      .with_entry("saxpy")
      .with_entry("scale<float>");
}

class SessionCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  }
  SessionOptions options() {
    SessionOptions made;
    made.settings = {
        {"cache.dir", cache_.path("cache")}, {"driver", FakeCudaDriver::path()}, {"nvrtc", toolkit_nvrtc()}};
    made.on_event = log_.callback();
    return made;
  }
  static Status launch(const KernelRef& kernel, StreamRef stream = cuda::default_stream) {
    const LaunchConfig config(Grid(1), Block(1), stream);
    return kernel.launch(config, 0U, 1.0F, static_cast<void*>(nullptr), static_cast<void*>(nullptr));
  }
  cuda::Context make_context(int device) {
    cuda::Context context = nullptr;
    EXPECT_EQ(driver_.application().CtxCreate(&context, 0, device), DriverResult::Success);
    driver_.driver().CtxSetCurrent(nullptr);
    return context;
  }
  /// Replaces the unit's artifact in the cache by invalid code with correct checksums, which every driver rejects.
  void discard(const Target& target) {
    SessionOptions same = options();
    same.on_event = nullptr;
    Session session = Session::open(same).value();
    ResolvedArtifact answer = session.resolve(saxpy(), target).value();
    answer.artifact.bytes = Bytes::of("no cubin at all");
    ASSERT_TRUE(
        detail::SessionAccess::components(session).disks().front()->put(answer.key, answer.artifact, {}).has_value());
  }

  TemporaryDirectory cache_;
  EventLog log_;
  FakeCudaDriver driver_{"sm_80"};
};

TEST_F(SessionCuda, ErrorOfMissingEntryNamesNextStep) {
  Session session = Session::open(options()).value();
  ASSERT_TRUE(session.make_current(Backend::Cuda).has_value());
  EXPECT_EQ(session.get(saxpy()).error().message,
            "unit 'saxpy.cu' has several entries; name one of them: saxpy, scale<float>");
  EXPECT_EQ(session.get(saxpy(), "scale").error().message,
            "unit 'saxpy.cu' has no entry 'scale'; name one of its entries: saxpy, scale<float>");
  const Unit nothing = Unit::cuda("k.cu", "__global__ void k() {}\n");
  EXPECT_EQ(session.get(nothing).error().message,
            "unit 'k.cu' has no entry; add the name of its kernel with Unit::with_entry");
}

TEST_F(SessionCuda, CompilesOncePerArchitectureAndLoadsOncePerContext) {
  driver_.reset("sm_80,sm_80,sm_90,sm_90");
  {
    Session session = Session::open(options()).value();
    session.request({saxpy()});
    const KernelHandle handle = session.handle(saxpy(), "saxpy");
    cuda::Context extra[2] = {nullptr, nullptr};
    std::vector<std::thread> threads;
    std::atomic<int> rounds{0};
    std::atomic<bool> destroyed{false};
    Mutex goodbye;
    ASSERT_TRUE(session.make_current(Backend::Cuda, 0).has_value());
    extra[0] = make_context(0);
    extra[1] = make_context(3);
    for (unsigned number = 0; number < 8; ++number) {
      threads.emplace_back([&, number] {
        for (unsigned round = 0; round < 40; ++round, ++rounds) {
          const unsigned where = (number + round) % 6;
          if (where < 4) {
            ASSERT_TRUE(session.make_current(Backend::Cuda, where).has_value());
          } else if (const MutexLock lock(goodbye); where == 4 || !destroyed) {
            driver_.driver().CtxSetCurrent(extra[where - 4]);
          } else {
            continue;
          }
          const auto kernel = handle.get(seconds(60));
          if (where < 5) {
            ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
          }
          if (!kernel) continue;  // the context was destroyed in the meantime
          const Status launched = launch(*kernel);
          ASSERT_TRUE(launched.has_value() || where == 5) << launched.error().message;
        }
      });
    }
    while (rounds < 150) std::this_thread::yield();
    {
      const MutexLock lock(goodbye);
      destroyed = true;
      EXPECT_EQ(driver_.application().CtxDestroy(extra[1]), DriverResult::Success);
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(driver_.application().CtxDestroy(extra[0]), DriverResult::Success);

    EXPECT_EQ(log_.count(Event::Kind::Compiled), 2U);
    std::map<std::pair<unsigned long long, cuda::Library>, int> loads;
    std::set<cuda::Library> libraries;
    for (const FakeLoad& load : driver_.loads()) {
      ++loads[{load.context, load.library}];
      libraries.insert(load.library);
    }
    EXPECT_EQ(libraries.size(), 2U);
    EXPECT_LE(loads.size(), 6U);
    for (const auto& [where, times] : loads) EXPECT_EQ(times, 1);
  }
  EXPECT_EQ(driver_.stale_uses(), 0U);
  EXPECT_EQ(driver_.leaks(), 0U);
}

TEST_F(SessionCuda, CaptureSurvivesCompilesAndLoadsInOtherThreads) {
  Session session = Session::open(options()).value();
  ASSERT_TRUE(session.make_current(Backend::Cuda, 0).has_value());
  const KernelHandle before = session.handle(saxpy(), "saxpy");
  const Kernel kernel = before.get(seconds(60)).value();
  cuda::Stream stream = nullptr;
  ASSERT_EQ(driver_.driver().StreamCreate(&stream, cuda::kStreamNonBlocking), DriverResult::Success);
  ASSERT_EQ(driver_.application().StreamBeginCapture(stream, cuda::CaptureMode::Global), DriverResult::Success);

  // The device tests have two hundred loads at once; this test includes the compiles.
  Units units;
  for (int i = 0; i < 20; ++i) {
    units.push_back(
        Unit::cuda("k" + std::to_string(i), "extern \"C\" __global__ void f(int* x) { *x = 1; }").with_entry("f"));
  }
  session.request(units);
  while (session.status().pending > 0) ASSERT_TRUE(launch(kernel, stream).has_value());

  EXPECT_EQ(log_.count(Event::Kind::Loaded), 21U);
  ASSERT_TRUE(launch(kernel, stream).has_value());
  GraphPointer graph = nullptr;
  EXPECT_EQ(driver_.application().StreamEndCapture(stream, &graph), DriverResult::Success);
  EXPECT_EQ(driver_.application().GraphDestroy(graph), DriverResult::Success);
  EXPECT_EQ(driver_.driver().StreamDestroy(stream), DriverResult::Success);
}

TEST_F(SessionCuda, GetOnCapturingStreamIsReadyOrFailsWithoutWork) {
  Session session = Session::open(options()).value();
  ASSERT_TRUE(session.make_current(Backend::Cuda, 0).has_value());
  const KernelHandle handle = session.handle(saxpy(), "saxpy");
  cuda::Stream stream = nullptr;
  ASSERT_EQ(driver_.driver().StreamCreate(&stream, cuda::kStreamNonBlocking), DriverResult::Success);
  ASSERT_EQ(driver_.application().StreamBeginCapture(stream, cuda::CaptureMode::Global), DriverResult::Success);
  const auto cold = handle.get_for_stream(StreamRef::from_native(stream), seconds(60));
  ASSERT_FALSE(cold.has_value());
  EXPECT_EQ(cold.error().code, Code::Capturing);
  EXPECT_EQ(session.status().submitted, 0U);
  GraphPointer graph = nullptr;
  ASSERT_EQ(driver_.application().StreamEndCapture(stream, &graph), DriverResult::Success);
  driver_.application().GraphDestroy(graph);

  ASSERT_TRUE(handle.get_for_stream(StreamRef::from_native(stream), seconds(60)).has_value());
  ASSERT_EQ(driver_.application().StreamBeginCapture(stream, cuda::CaptureMode::Global), DriverResult::Success);
  const auto warm = handle.get_for_stream(StreamRef::from_native(stream), seconds(60));
  ASSERT_TRUE(warm.has_value());
  EXPECT_TRUE(launch(*warm, StreamRef::from_native(stream)).has_value());
  ASSERT_EQ(driver_.application().StreamEndCapture(stream, &graph), DriverResult::Success);
  driver_.application().GraphDestroy(graph);
  driver_.driver().StreamDestroy(stream);
}

TEST_F(SessionCuda, ArtifactRejectedByDriverIsRebuiltAndReplaced) {
  discard(Target::sm(80));
  {
    Session session = Session::open(options()).value();
    ASSERT_TRUE(session.make_current(Backend::Cuda, 0).has_value());
    const auto kernel = session.get(saxpy(), "saxpy", seconds(60));
    ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
    EXPECT_TRUE(launch(*kernel).has_value());
    EXPECT_GE(log_.count(Event::Kind::LoadRejected), 1U);
    EXPECT_EQ(log_.count(Event::Kind::Compiled), 1U);
  }
  Session later = Session::open(options()).value();
  ASSERT_TRUE(later.make_current(Backend::Cuda, 0).has_value());
  EXPECT_TRUE(later.get(saxpy(), "saxpy", seconds(60)).has_value());
  EXPECT_EQ(log_.count(Event::Kind::Compiled), 1U) << "the compiled artifact is in the cache";
}

TEST_F(SessionCuda, ArtifactRejectedLateIsRebuiltToo) {
  Session session = Session::open(options()).value();
  ASSERT_TRUE(session.make_current(Backend::Cuda, 0).has_value());
  driver_.fail("cuKernelGetFunction", 1, DriverResult::NoBinaryForGpu);
  const auto kernel = session.get(saxpy(), "saxpy", seconds(60));
  // NVRTC produces the same bytes again, which this driver has rejected: that is an error, and it is cached.
  ASSERT_FALSE(kernel.has_value());
  EXPECT_EQ(kernel.error().code, Code::LoadRejected);
  const std::size_t compiles = log_.count(Event::Kind::Compiled);
  EXPECT_FALSE(session.get(saxpy(), "saxpy", seconds(60)).has_value());
  EXPECT_EQ(log_.count(Event::Kind::Compiled), compiles);
  EXPECT_GE(log_.count(Event::Kind::LoadRejected), 1U);
}

TEST_F(SessionCuda, PermanentRejectionIsCachedError) {
  driver_.fail("cuLibraryLoadData", 1, DriverResult::NoBinaryForGpu, 1000);
  Session session = Session::open(options()).value();
  ASSERT_TRUE(session.make_current(Backend::Cuda, 0).has_value());
  for (int i = 0; i < 3; ++i) {
    const auto kernel = session.get(saxpy(), "saxpy", seconds(60));
    ASSERT_FALSE(kernel.has_value());
    EXPECT_EQ(kernel.error().code, Code::LoadRejected) << kernel.error().message;
  }
  EXPECT_LE(log_.count(Event::Kind::Compiled), 2U);
}

TEST_F(SessionCuda, ThreadWithoutContextGetsErrorWithNextStep) {
  Session session = Session::open(options()).value();
  const auto kernel = session.get(saxpy(), "saxpy", seconds(60));
  ASSERT_FALSE(kernel.has_value());
  EXPECT_EQ(kernel.error().code, Code::Unavailable) << kernel.error().message;
  EXPECT_NE(kernel.error().message.find("; call make_current"), std::string::npos) << kernel.error().message;
}

TEST_F(SessionCuda, StreamMakesPrimaryContextCurrentInThreadWithoutContext) {
  Session session = Session::open(options()).value();
  const auto stream = session.stream(Backend::Cuda);
  ASSERT_TRUE(stream.has_value()) << stream.error().message;
  const auto buffer = stream->copy_of(std::vector<float>(16));
  ASSERT_TRUE(buffer.has_value()) << buffer.error().message;
  const auto kernel = session.get(saxpy(), "saxpy", seconds(60));
  ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
  EXPECT_TRUE(launch(*kernel, *stream).has_value());
}

TEST_F(SessionCuda, ExceptionOfFailedCompileContainsCompilerLog) {
  Session session = Session::open(options()).value();
  try {
    (void)session.artifact(Unit::cuda("broken.cu", "__global__ void k() { undeclared(); }"), Target::sm(80)).value();
    ADD_FAILURE() << "the unit was compiled";
  } catch (const ResultError& error) {
    EXPECT_NE(std::string(error.what()).find("broken.cu(1): error: identifier \"undeclared\" is undefined"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(SessionCuda, EachLevelWorksOnItsOwn) {
  Session session = Session::open(options()).value();
  EXPECT_TRUE(session.artifact(saxpy(), Target::sm(90), seconds(60)).has_value());
  EXPECT_EQ(driver_.calls("cuInit"), 0U) << "bytes need no driver";
  ASSERT_TRUE(session.make_current(Backend::Cuda, 0).has_value());
  const auto kernel = session.get(saxpy(), "scale<float>", seconds(60));
  ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
  EXPECT_NE(kernel->native(), nullptr);
  EXPECT_NE(kernel->function().value(), nullptr);
}

TEST_F(SessionCuda, LaunchReportsItsSharedMemoryAndTheBlockForIt) {
  const Unit tile = Unit::cuda("tile.cu",
                               "extern \"C\" __global__ void tile(float* x) {"
                               " __shared__ float fixed[512]; extern __shared__ float more[];"
                               " fixed[threadIdx.x] = more[threadIdx.x] = *x; __syncthreads();"
                               " *x = fixed[0] + more[1]; }")
                        .with_entry("tile");
  Session session = Session::open(options()).value();
  ASSERT_TRUE(session.make_current(Backend::Cuda).has_value());
  const Kernel kernel = session.get(tile, "tile", seconds(60)).value();
  for (const std::size_t dynamic : {0, 100 << 10}) {
    LaunchConfig config(Grid(1), Block(32), cuda::default_stream);
    config.shared_bytes = dynamic;
    ASSERT_TRUE(kernel.launch(config, static_cast<void*>(nullptr)).has_value());
    const Event event = log_.of(Event::Kind::Launched).back();
    EXPECT_EQ(event.shared_bytes, 2048 + dynamic);
    EXPECT_EQ(event.suggested_block_threads, kernel.occupancy(dynamic)->block_size) << "for this shared memory";
  }
}

TEST_F(SessionCuda, CopyReportsWhetherHostMemoryIsPinned) {
  Session session = Session::open(options()).value();
  ASSERT_TRUE(session.make_current(Backend::Cuda).has_value());
  const Stream stream = session.stream(Backend::Cuda).value();
  std::vector<float> rows(1024);
  const Buffer buffer = stream.copy_of(rows).value();
  EXPECT_EQ(log_.of(Event::Kind::Copied).back().pinned, false);
  driver_.application().MemHostRegister(rows.data(), rows.size() * sizeof(float), 0);
  ASSERT_TRUE(stream.download(rows.data() + 1, buffer, 8).has_value());
  EXPECT_EQ(log_.of(Event::Kind::Copied).back().pinned, true);
  driver_.application().MemHostUnregister(rows.data());
  ASSERT_TRUE(stream.upload(buffer, rows.data(), 8).has_value());
  EXPECT_EQ(log_.of(Event::Kind::Copied).back().pinned, false);
  driver_.fail("cuPointerGetAttribute", 1, DriverResult::NotSupported);
  ASSERT_TRUE(stream.upload(buffer, rows.data(), 8).has_value());
  EXPECT_EQ(log_.of(Event::Kind::Copied).back().pinned, std::nullopt);
}

TEST_F(SessionCuda, WithoutListenerNothingIsAskedForEvents) {
  static const std::atomic<bool> off{false};
  SessionOptions none = options();
  none.on_event = nullptr;
  SessionOptions switched_off = options();
  switched_off.on_event_enabled = &off;
  for (const SessionOptions& quiet : {none, switched_off}) {
    Session session = Session::open(quiet).value();
    ASSERT_TRUE(session.make_current(Backend::Cuda).has_value());
    const Stream stream = session.stream(Backend::Cuda).value();
    ASSERT_TRUE(stream.copy_of(std::vector<float>(1024)).has_value());
    ASSERT_TRUE(launch(session.get(saxpy(), "saxpy", seconds(60)).value()).has_value());
  }
  for (const char* call : {"cuPointerGetAttribute", "cuKernelGetAttribute", "cuOccupancyMaxPotentialBlockSize"}) {
    EXPECT_EQ(driver_.calls(call), 0U) << call;
  }
}

}  // namespace
}  // namespace kiln::test
