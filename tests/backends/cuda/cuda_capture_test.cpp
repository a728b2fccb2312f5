// SPDX-License-Identifier: Apache-2.0
// CudaDevice while a stream captures a graph, with the capture rules of the driver double.
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cuda/cuda_test.hpp"

namespace kiln::test {
namespace {

using cuda::CaptureMode;
using cuda::DriverResult;

class CudaCapture : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_TRUE(device_.make_current(0).has_value());
    stream_ = device_.create_stream().value();
  }
  void begin(CaptureMode mode = CaptureMode::Global) {
    ASSERT_EQ(driver_.application().StreamBeginCapture(static_cast<cuda::Stream>(stream_), mode),
              DriverResult::Success);
  }
  /// Ends the capture. Returns true if it was successful; `nodes` is the number of its nodes.
  bool end(std::size_t* nodes = nullptr) {
    GraphPointer graph = nullptr;
    const DriverResult result = driver_.application().StreamEndCapture(static_cast<cuda::Stream>(stream_), &graph);
    if (result != DriverResult::Success) return false;
    if (nodes != nullptr) driver_.application().GraphGetNodes(graph, nullptr, nodes);
    return driver_.application().GraphDestroy(graph) == DriverResult::Success;
  }

  CudaDevice device_{options()};
  void* stream_ = nullptr;
};

TEST_F(CudaCapture, UnpreparedKernelReturnsCapturingWithoutEffect) {
  const auto kernel = saxpy_of(device_, artifact());
  begin();
  EXPECT_TRUE(device_.capturing(stream_).value());
  for (const Status& status : {kernel->prepare(stream_), launch_nothing(*kernel, stream_)}) {
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, Code::Capturing) << status.error().message;
  }
  EXPECT_EQ(driver_.loads().size(), 0U);
  EXPECT_EQ(driver_.calls("cuLaunchKernelEx"), 0U);
  std::size_t nodes = 99;
  EXPECT_TRUE(end(&nodes));
  EXPECT_EQ(nodes, 0U);
  EXPECT_FALSE(device_.capturing(stream_).value());
  EXPECT_TRUE(launch_nothing(*kernel, stream_).has_value());
}

TEST_F(CudaCapture, PreparedKernelIsCaptured) {
  const auto kernel = saxpy_of(device_, artifact());
  ASSERT_TRUE(kernel->prepare(stream_).has_value());
  begin();
  EXPECT_TRUE(kernel->prepare(stream_).has_value());
  ASSERT_TRUE(launch_nothing(*kernel, stream_).has_value());
  std::size_t nodes = 0;
  EXPECT_TRUE(end(&nodes));
  EXPECT_EQ(nodes, 1U);
  ASSERT_EQ(driver_.launches().size(), 1U);
  EXPECT_TRUE(driver_.launches()[0].captured);
}

TEST_F(CudaCapture, RejectedOperationsDoNotInvalidateCapture) {
  void* memory = device_.allocate(16, stream_).value();
  char bytes[16] = {};
  for (const CaptureMode mode : {CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed}) {
    begin(mode);
    EXPECT_EQ(device_.allocate(16, stream_).error().code, Code::Capturing);
    for (const Status& status :
         {device_.release(memory, 16, stream_), device_.copy_to_device(memory, bytes, 16, stream_),
          device_.copy_to_host(bytes, memory, 16, stream_), device_.synchronize(stream_)}) {
      ASSERT_FALSE(status.has_value());
      EXPECT_EQ(status.error().code, Code::Capturing) << status.error().message;
    }
    std::size_t nodes = 99;
    EXPECT_TRUE(end(&nodes));
    EXPECT_EQ(nodes, 0U);
  }
  EXPECT_EQ(driver_.counts().lost_captures, 0U);
  EXPECT_TRUE(device_.release(memory, 16, stream_).has_value());
}

TEST_F(CudaCapture, GivenAllocatorIsNotCalled) {
  int asked = 0;
  CudaDevice device({FakeCudaDriver::path(),
                     {[&](std::size_t, StreamRef) -> Result<void*> {
                        ++asked;
                        return &asked;
                      },
                      [&](void*, std::size_t, StreamRef) { ++asked; }}});
  begin();
  EXPECT_EQ(device.allocate(16, stream_).error().code, Code::Capturing);
  EXPECT_EQ(device.release(&asked, 16, stream_).error().code, Code::Capturing);
  EXPECT_EQ(asked, 0);
  EXPECT_TRUE(end());
}

TEST_F(CudaCapture, LegacyStreamIsRejectedDuringBlockingCapture) {
  const auto kernel = saxpy_of(device_, artifact());
  cuda::Stream blocking = nullptr;
  ASSERT_EQ(driver_.driver().StreamCreate(&blocking, 0), DriverResult::Success);
  void* const kept = std::exchange(stream_, blocking);
  begin();
  EXPECT_TRUE(device_.capturing(nullptr).value());
  EXPECT_EQ(launch_nothing(*kernel, nullptr).error().code, Code::Capturing);
  EXPECT_EQ(device_.synchronize(nullptr).error().code, Code::Capturing);
  EXPECT_TRUE(end());
  stream_ = kept;
}

TEST_F(CudaCapture, SurvivesLoadsInOtherThreads) {
  const auto before = saxpy_of(device_, artifact());
  ASSERT_TRUE(before->prepare(stream_).has_value());
  begin(CaptureMode::Global);
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      try {
        device_.make_current(0).value();
        void* own = device_.create_stream().value();
        for (int i = 0; i < 50; ++i, ++good) {
          const auto kernel = saxpy_of(device_, artifact());
          kernel->prepare(own).value();
          (void)kernel->occupancy(0).value();
          launch_nothing(*kernel, own).value();
        }
        void* memory = device_.allocate(64, own).value();
        device_.synchronize(own).value();
        device_.release(memory, 64, own).value();
        device_.release_stream(own).value();
      } catch (const ResultError& error) {
        ADD_FAILURE() << error.what();
        good = 1000;
      }
    });
  }
  int recorded = 0;
  while (good < 200 && recorded < 100'000 && launch_nothing(*before, stream_).has_value()) ++recorded;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 200);
  EXPECT_EQ(driver_.loads().size(), 201U);
  std::size_t nodes = 0;
  EXPECT_TRUE(end(&nodes)) << "a load in another thread invalidated the capture";
  EXPECT_EQ(nodes, static_cast<std::size_t>(recorded));
  EXPECT_EQ(driver_.counts().lost_captures, 0U);
}

TEST_F(CudaCapture, RestoresCaptureModeOfThread) {
  CaptureMode mode = CaptureMode::ThreadLocal;
  ASSERT_EQ(driver_.driver().ThreadExchangeStreamCaptureMode(&mode), DriverResult::Success);
  const auto kernel = saxpy_of(device_, artifact());
  EXPECT_TRUE(launch_nothing(*kernel, stream_).has_value());
  EXPECT_TRUE(device_.synchronize(stream_).has_value());
  mode = CaptureMode::Global;
  ASSERT_EQ(driver_.driver().ThreadExchangeStreamCaptureMode(&mode), DriverResult::Success);
  EXPECT_EQ(mode, CaptureMode::ThreadLocal);
}

}  // namespace
}  // namespace kiln::test
