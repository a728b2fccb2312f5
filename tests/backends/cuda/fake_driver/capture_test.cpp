// SPDX-License-Identifier: Apache-2.0
// The calls that the driver double allows while a stream captures a graph.
#include <thread>

#include "fixture.hpp"

namespace kiln::test {
namespace {

using cuda::CaptureMode;
using cuda::CaptureStatus;

class FakeCapture : public FakeFixture {
 protected:
  void SetUp() override {
    FakeFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    stream_ = stream();
    nothing_ = kernel(loaded(), "nothing");
  }
  CaptureStatus status(cuda::Stream of) {
    CaptureStatus value = CaptureStatus::None;
    EXPECT_EQ(cu.StreamIsCapturing(of, &value), R::Success);
    return value;
  }
  /// Begins a capture, runs `meanwhile`, and ends the capture. Returns the result of ending it.
  template <class Meanwhile>
  R record(CaptureMode mode, Meanwhile meanwhile) {
    EXPECT_EQ(app.StreamBeginCapture(stream_, mode), R::Success);
    meanwhile();
    GraphPointer graph = nullptr;
    const R result = app.StreamEndCapture(stream_, &graph);
    EXPECT_EQ(graph != nullptr, result == R::Success);
    if (graph != nullptr) app.GraphDestroy(graph);
    return result;
  }
  /// Runs `body` in another thread with the same context current.
  template <class Body>
  void elsewhere(Body body) {
    std::thread([&] {
      cu.CtxSetCurrent(context_);
      body();
    }).join();
  }
  R allocate() {
    cuda::DevicePointer memory = 0;
    return app.MemAlloc(&memory, 64);
  }
  R exchange(CaptureMode mode) { return cu.ThreadExchangeStreamCaptureMode(&mode); }

  cuda::Stream stream_ = nullptr;
  cuda::Kernel nothing_ = nullptr;
};

TEST_F(FakeCapture, CapturedWorkRunsWhenGraphIsLaunched) {
  static int runs;
  runs = 0;
  driver_.on_launch("nothing", [](const FakeLaunch*, void*) { ++runs; });
  cuda::Function function = nullptr;
  ASSERT_EQ(cu.KernelGetFunction(&function, nothing_), R::Success);
  ASSERT_EQ(app.StreamBeginCapture(stream_, CaptureMode::Global), R::Success);
  EXPECT_EQ(status(stream_), CaptureStatus::Active);
  EXPECT_EQ(launch(nothing_, stream_), R::Success);
  EXPECT_EQ(launch(nothing_, stream_), R::Success);
  GraphPointer graph = nullptr;
  ASSERT_EQ(app.StreamEndCapture(stream_, &graph), R::Success);
  std::size_t nodes = 0;
  EXPECT_EQ(app.GraphGetNodes(graph, nullptr, &nodes), R::Success);
  EXPECT_EQ(nodes, 2u);
  EXPECT_EQ(cu.StreamSynchronize(stream_), R::Success);
  EXPECT_EQ(runs, 0);
  EXPECT_TRUE(driver_.launches().at(0).captured);

  GraphExecPointer exec = nullptr;
  ASSERT_EQ(app.GraphInstantiate(&exec, graph, 0), R::Success);
  EXPECT_EQ(app.GraphLaunch(exec, stream_), R::Success);
  EXPECT_EQ(app.GraphLaunch(exec, stream_), R::Success);
  EXPECT_EQ(cu.StreamSynchronize(stream_), R::Success);
  EXPECT_EQ(runs, 4);
}

TEST_F(FakeCapture, UnsafeCallInCapturingThreadInvalidatesCapture) {
  for (const CaptureMode mode : {CaptureMode::Global, CaptureMode::ThreadLocal}) {
    EXPECT_EQ(record(mode, [&] { EXPECT_EQ(allocate(), R::CaptureUnsupported); }), R::CaptureInvalidated);
  }
  EXPECT_EQ(record(CaptureMode::Relaxed, [&] { EXPECT_EQ(allocate(), R::Success); }), R::Success);
  EXPECT_EQ(driver_.counts().lost_captures, 2u);
}

TEST_F(FakeCapture, OtherThreadInvalidatesOnlyGlobalCapture) {
  const auto other = [&](R expected) { elsewhere([&, expected] { EXPECT_EQ(allocate(), expected); }); };
  EXPECT_EQ(record(CaptureMode::Global, [&] { other(R::CaptureUnsupported); }), R::CaptureInvalidated);
  EXPECT_EQ(record(CaptureMode::ThreadLocal, [&] { other(R::Success); }), R::Success);
  EXPECT_EQ(record(CaptureMode::Relaxed, [&] { other(R::Success); }), R::Success);
}

TEST_F(FakeCapture, ThreadWithExchangedModeDoesNotInvalidate) {
  for (const CaptureMode mode : {CaptureMode::ThreadLocal, CaptureMode::Relaxed}) {
    const R ended = record(CaptureMode::Global, [&] {
      elsewhere([&] {
        EXPECT_EQ(exchange(mode), R::Success);
        EXPECT_EQ(allocate(), R::Success);
        loaded("sm_90");
      });
    });
    EXPECT_EQ(ended, R::Success);
  }
  const R ended = record(CaptureMode::Global, [&] {
    EXPECT_EQ(exchange(CaptureMode::Relaxed), R::Success);
    EXPECT_EQ(allocate(), R::Success);
    EXPECT_EQ(driver_.counts().relaxed_threads, 3u);
    EXPECT_EQ(exchange(CaptureMode::Global), R::Success);
  });
  EXPECT_EQ(ended, R::Success);
  EXPECT_EQ(driver_.counts().relaxed_threads, 2u);
}

TEST_F(FakeCapture, FirstLoadIntoContextInvalidatesCapture) {
  EXPECT_EQ(record(CaptureMode::Global, [&] { EXPECT_EQ(launch(nothing_, stream_), R::CaptureUnsupported); }),
            R::CaptureInvalidated);
  EXPECT_TRUE(driver_.loads().empty());
  ASSERT_EQ(launch(nothing_, stream_), R::Success);
  EXPECT_EQ(record(CaptureMode::Global, [&] { EXPECT_EQ(launch(nothing_, stream_), R::Success); }), R::Success);
  EXPECT_EQ(driver_.loads().size(), 1u);
}

TEST_F(FakeCapture, EveryWaitInvalidatesCapture) {
  EventPointer event = nullptr;
  ASSERT_EQ(app.EventCreate(&event, 0), R::Success);
  const auto lost = [&](auto call) {
    EXPECT_EQ(record(CaptureMode::ThreadLocal, [&] { EXPECT_EQ(call(), R::CaptureUnsupported); }),
              R::CaptureInvalidated);
  };
  lost([&] { return cu.StreamSynchronize(stream_); });
  lost([&] { return app.StreamQuery(stream_); });
  lost([&] { return app.CtxSynchronize(); });
  lost([&] { return app.EventQuery(event); });
  cuda::Stream other = stream();
  lost([&] { return cu.StreamSynchronize(other); });
  char byte = 0;
  const cuda::DevicePointer device = memory(1);
  lost([&] { return cu.MemcpyDtoH(&byte, device, 1); });
  lost([&] { return app.MemFree(device); });
}

TEST_F(FakeCapture, SynchronizingCapturingStreamAlwaysInvalidates) {
  elsewhere([&] { exchange(CaptureMode::Relaxed); });
  const R ended = record(CaptureMode::Relaxed, [&] {
    elsewhere([&] {
      exchange(CaptureMode::Relaxed);
      EXPECT_EQ(cu.StreamSynchronize(stream_), R::CaptureUnsupported);
    });
  });
  EXPECT_EQ(ended, R::CaptureInvalidated);
}

TEST_F(FakeCapture, LegacyStreamIsInvalidDuringBlockingCapture) {
  stream_ = stream(0);
  const R asked = record(CaptureMode::Relaxed, [&] {
    CaptureStatus status;
    EXPECT_EQ(cu.StreamIsCapturing(nullptr, &status), R::CaptureImplicit);
  });
  EXPECT_EQ(asked, R::Success);
  ASSERT_EQ(launch(nothing_, stream_), R::Success);
  EXPECT_EQ(record(CaptureMode::Relaxed, [&] { EXPECT_EQ(launch(nothing_, nullptr), R::CaptureImplicit); }),
            R::CaptureInvalidated);
  EXPECT_EQ(app.StreamBeginCapture(nullptr, CaptureMode::Relaxed), R::CaptureUnsupported);
}

TEST_F(FakeCapture, AllocationsAndCopiesAreCaptured) {
  int host = 5;
  int back = 0;
  ASSERT_EQ(app.StreamBeginCapture(stream_, CaptureMode::Global), R::Success);
  cuda::DevicePointer device = 0;
  EXPECT_EQ(cu.MemAllocAsync(&device, sizeof host, stream_), R::Success);
  EXPECT_EQ(cu.MemcpyHtoDAsync(device, &host, sizeof host, stream_), R::Success);
  EXPECT_EQ(cu.MemcpyDtoHAsync(&back, device, sizeof back, stream_), R::Success);
  EXPECT_EQ(cu.MemFreeAsync(device, stream_), R::Success);
  GraphPointer graph = nullptr;
  ASSERT_EQ(app.StreamEndCapture(stream_, &graph), R::Success);
  GraphExecPointer exec = nullptr;
  ASSERT_EQ(app.GraphInstantiate(&exec, graph, 0), R::Success);
  for (int round = 0; round < 3; ++round) {
    host = round + 10;
    EXPECT_EQ(app.GraphLaunch(exec, stream_), R::Success);
    EXPECT_EQ(cu.StreamSynchronize(stream_), R::Success);
    EXPECT_EQ(back, round + 10);
  }
  EXPECT_EQ(driver_.counts().allocations, 0u);
}

TEST_F(FakeCapture, CaptureIsEndedByItsThread) {
  GraphPointer graph = nullptr;
  EXPECT_EQ(app.StreamEndCapture(stream_, &graph), R::IllegalState);
  ASSERT_EQ(app.StreamBeginCapture(stream_, CaptureMode::Global), R::Success);
  EXPECT_EQ(app.StreamBeginCapture(stream_, CaptureMode::Global), R::IllegalState);
  elsewhere([&] { EXPECT_EQ(app.StreamEndCapture(stream_, &graph), R::CaptureWrongThread); });
  EXPECT_EQ(app.StreamEndCapture(stream_, &graph), R::Success);
}

}  // namespace
}  // namespace kiln::test
