// SPDX-License-Identifier: Apache-2.0
// Callables on the driver double, with a library that records calls instead of NVIDIA's.
#include <gtest/gtest.h>

#include <kiln/cccl.hpp>
#include <kiln/cuda.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "backends/cuda/cuda_device.hpp"
#include "session/cccl_callable_state.hpp"
#include "support/fakes/cccl_recorder.hpp"
#include "support/fakes/cuda_driver/control.hpp"
#include "support/fixtures/event_log.hpp"

namespace kiln::test {
namespace {

using cccl::Call;
using cccl::Callable;
using cccl::Spec;
using cuda::DriverResult;

class CcclCallable : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(device_->make_current(0).has_value());
    stream_ = device_->create_stream().value();
    call_.stream = StreamRef::from_native(stream_);
    call_.iterators = {this, this};
    call_.items = 100;
    call_.init = &init_;
  }
  void TearDown() override {
    (void)device_->release_stream(stream_);
    device_.reset();
    EXPECT_EQ(driver_.leaks(), 0U);
  }
  Callable callable(const Spec& spec) {
    auto module = std::make_shared<const CcclModule>(api_, recorder_.build(spec.algorithm),
                                                     std::vector<std::string>{"_Z6kernelv"});
    auto state = std::make_shared<Callable::State>(Callable::State::Params{
        nullptr, device_.get(), std::move(module), spec, Target::sm(80), spec.name, 7, Origin::Disk, log_.emitter()});
    state->warm_up();
    return cccl::detail::CallableAccess::make(std::move(state));
  }
  void begin_recording() {
    ASSERT_EQ(driver_.application().StreamBeginCapture(static_cast<cuda::Stream>(stream_), cuda::CaptureMode::Global),
              DriverResult::Success);
  }
  void end_recording() {
    GraphPointer graph = nullptr;
    ASSERT_EQ(driver_.application().StreamEndCapture(static_cast<cuda::Stream>(stream_), &graph),
              DriverResult::Success);
    driver_.application().GraphDestroy(graph);
  }

  FakeCudaDriver driver_{"sm_80,sm_90,sm_80"};
  EventLog log_;
  CcclRecorder recorder_;
  std::shared_ptr<const CudaApi> api_ = CudaApi::open(FakeCudaDriver::path()).value();
  std::unique_ptr<CudaDevice> device_ = std::make_unique<CudaDevice>(CudaDevice::Options{FakeCudaDriver::path(), {}});
  const int init_ = 0;
  void* stream_ = nullptr;
  Call call_;
};

TEST_F(CcclCallable, QueriesFirstSizeAtCreationAndAllocatesAtCall) {
  const Callable reduce = callable(cccl::reduce<std::int32_t>());
  EXPECT_EQ(recorder_.questions(), 1);
  EXPECT_EQ(driver_.calls("cuMemAllocAsync"), 0U);
  ASSERT_TRUE(reduce(call_).has_value());
  EXPECT_EQ(recorder_.questions(), 1) << "a hundred items are fewer than the queried size";
  EXPECT_EQ(driver_.calls("cuMemAllocAsync"), 1U);
  call_.items = 1000000;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(reduce(call_).has_value());
  EXPECT_TRUE(recorder_.record().enough);
  EXPECT_EQ(recorder_.questions(), 2);
  EXPECT_EQ(driver_.calls("cuMemAllocAsync"), 2U);
  EXPECT_EQ(recorder_.runs(), 4);
  EXPECT_EQ(driver_.calls("cuStreamSynchronize"), 0U);
  ASSERT_TRUE(device_->synchronize(stream_).has_value());
  EXPECT_EQ(driver_.counts().allocations, 1U) << "the block that was too small was freed";
  EXPECT_EQ(reduce.kernels(), (std::vector<std::string>{"_Z6kernelv"}));
}

TEST_F(CcclCallable, AlgorithmsWithoutStorageOnlyLaunch) {
  const Callable search = callable(cccl::lower_bound<std::int32_t>());
  call_.iterators = {this, this, this};
  ASSERT_TRUE(search(call_).has_value());
  EXPECT_TRUE(search.reserve(call_).has_value());
  EXPECT_EQ(search.temp_storage_bytes(call_).value(), 0U);
  EXPECT_EQ(recorder_.questions(), 0);
  EXPECT_EQ(driver_.calls("cuMemAllocAsync"), 0U);
}

TEST_F(CcclCallable, CallerStorageIsUsedUnchanged) {
  const Callable reduce = callable(cccl::reduce<std::int32_t>());
  call_.items = 5000;
  call_.temp_storage_bytes = reduce.temp_storage_bytes(call_).value();
  call_.temp_storage = this;
  ASSERT_TRUE(reduce(call_).has_value());
  EXPECT_EQ(recorder_.record().storage, this);
  EXPECT_EQ(driver_.calls("cuMemAllocAsync"), 0U);
  recorder_.set_outcome(1);  // the library's result for too little storage
  call_.temp_storage_bytes = 8;
  const Status small = reduce(call_);
  ASSERT_FALSE(small.has_value());
  EXPECT_EQ(small.error().code, Code::InvalidArgument);
  EXPECT_NE(small.error().message.find("the caller passed 8"), std::string::npos) << small.error().message;
}

TEST_F(CcclCallable, GraphUsesReservedStorageAndKeepsIt) {
  const Callable reduce = callable(cccl::reduce<std::int32_t>());
  call_.items = 50000;
  begin_recording();
  const Status cold = reduce(call_);
  ASSERT_FALSE(cold.has_value());
  EXPECT_EQ(cold.error().code, Code::Capturing);
  EXPECT_EQ(recorder_.runs(), 0);
  end_recording();

  ASSERT_TRUE(reduce.reserve(call_).has_value());
  begin_recording();
  ASSERT_TRUE(reduce(call_).has_value());
  void* const recorded = recorder_.record().storage;
  end_recording();
  call_.items = 500000;
  ASSERT_TRUE(reduce(call_).has_value());
  EXPECT_NE(recorder_.record().storage, recorded);
  EXPECT_EQ(driver_.counts().allocations, 2U) << "the block of the graph is kept";
  EXPECT_EQ(driver_.calls("cuMemFreeAsync"), 0U);
  EXPECT_EQ(reduce.release(*call_.stream).error().code, Code::InvalidArgument);
}

TEST_F(CcclCallable, ReleaseFreesStorageOfStream) {
  const Callable reduce = callable(cccl::reduce<std::int32_t>());
  ASSERT_TRUE(reduce(call_).has_value());
  EXPECT_EQ(driver_.counts().allocations, 1U);
  ASSERT_TRUE(reduce.release(*call_.stream).has_value());
  ASSERT_TRUE(device_->synchronize(stream_).has_value());
  EXPECT_EQ(driver_.counts().allocations, 0U);
}

TEST_F(CcclCallable, RejectsCallWithoutStream) {
  const Callable reduce = callable(cccl::reduce<std::int32_t>());
  call_.stream.reset();
  EXPECT_EQ(reduce(call_).error().code, Code::InvalidArgument);
  EXPECT_EQ(reduce.reserve(call_).error().code, Code::InvalidArgument);
  EXPECT_EQ(recorder_.runs(), 0);
}

TEST_F(CcclCallable, LegacyStreamKeepsStoragePerContext) {
  {
    const Callable reduce = callable(cccl::reduce<std::int32_t>());
    call_.stream = cuda::default_stream;
    ASSERT_TRUE(reduce(call_).has_value());
    EXPECT_EQ(recorder_.record().stream, cuda::default_stream.native());
    void* const first = recorder_.record().storage;
    call_.stream = StreamRef::from_native(nullptr);
    ASSERT_TRUE(reduce(call_).has_value());
    EXPECT_EQ(recorder_.record().stream, nullptr);
    EXPECT_EQ(recorder_.record().storage, first) << "null is the same stream";
    EXPECT_EQ(driver_.calls("cuMemAllocAsync"), 1U);

    ASSERT_TRUE(device_->make_current(2).has_value());
    ASSERT_TRUE(reduce(call_).has_value());
    EXPECT_NE(recorder_.record().storage, first) << "the stream of another context runs at the same time";
    EXPECT_EQ(driver_.calls("cuMemAllocAsync"), 2U);
    ASSERT_TRUE(reduce.release(cuda::default_stream).has_value());
    EXPECT_EQ(driver_.calls("cuMemFreeAsync"), 1U) << "only the storage of the current context is freed";
    ASSERT_TRUE(device_->make_current(0).has_value());
  }
  EXPECT_EQ(driver_.calls("cuMemFreeAsync"), 2U);
  EXPECT_EQ(driver_.calls("cuStreamSynchronize"), 0U);
  EXPECT_EQ(driver_.stale_uses(), 0U);
}

TEST_F(CcclCallable, LegacyStreamIsNotFreedFromOtherContext) {
  {
    const Callable reduce = callable(cccl::reduce<std::int32_t>());
    call_.stream = cuda::default_stream;
    ASSERT_TRUE(reduce(call_).has_value());
    ASSERT_TRUE(device_->make_current(2).has_value());
    ASSERT_TRUE(reduce.release(cuda::default_stream).has_value()) << "this context has no storage";
  }
  EXPECT_EQ(driver_.calls("cuMemFreeAsync"), 0U) << "it would not be ordered after the call";
  ASSERT_TRUE(device_->make_current(0).has_value());
}

TEST_F(CcclCallable, PerThreadStreamAllocatesForEachCall) {
  const Callable reduce = callable(cccl::reduce<std::int32_t>());
  call_.stream = cuda::per_thread_stream;
  EXPECT_TRUE(reduce.reserve(call_).has_value());
  EXPECT_EQ(driver_.calls("cuMemAllocAsync"), 0U);
  const auto call_in_context = [&] {
    ASSERT_TRUE(device_->make_current(0).has_value());
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(reduce(call_).has_value());
  };
  call_in_context();
  std::thread(call_in_context).join();
  EXPECT_EQ(recorder_.runs(), 4);
  EXPECT_EQ(driver_.calls("cuMemAllocAsync"), 4U);
  EXPECT_EQ(driver_.calls("cuMemFreeAsync"), 4U) << "on the stream of the thread that allocated";
  call_.items = 1000000;
  ASSERT_TRUE(reduce(call_).has_value());
  EXPECT_TRUE(recorder_.record().enough);
  EXPECT_TRUE(reduce.release(cuda::per_thread_stream).has_value());
  EXPECT_EQ(driver_.calls("cuStreamSynchronize"), 0U);
}

TEST_F(CcclCallable, LegacyStreamIsRejectedDuringBlockingCapture) {
  const Callable search = callable(cccl::lower_bound<std::int32_t>());
  call_.iterators = {this, this, this};
  call_.stream = cuda::default_stream;
  void* const kept = stream_;
  cuda::Stream blocking = nullptr;
  ASSERT_EQ(driver_.driver().StreamCreate(&blocking, 0), DriverResult::Success);
  stream_ = blocking;
  begin_recording();
  EXPECT_EQ(search(call_).error().code, Code::Capturing);
  EXPECT_EQ(recorder_.runs(), 0);
  end_recording();
  EXPECT_TRUE(search(call_).has_value());
  (void)device_->release_stream(blocking);
  stream_ = kept;
}

TEST_F(CcclCallable, DefaultStreamsAreNotWaitedFor) {
  for (const StreamRef stream : {StreamRef::from_native(nullptr), cuda::default_stream, cuda::per_thread_stream}) {
    EXPECT_EQ(device_->synchronize(stream.native()).error().code, Code::InvalidArgument);
  }
  EXPECT_EQ(driver_.calls("cuStreamSynchronize"), 0U);
}

TEST_F(CcclCallable, RejectsDeviceOfOtherArchitecture) {
  const Callable reduce = callable(cccl::reduce<std::int32_t>());
  EXPECT_TRUE(reduce.matches_current_device().value());
  ASSERT_TRUE(device_->make_current(1).has_value());
  EXPECT_FALSE(reduce.matches_current_device().value());
  EXPECT_EQ(reduce(call_).error().code, Code::InvalidArgument);
  EXPECT_EQ(recorder_.runs(), 0);
  ASSERT_TRUE(device_->make_current(0).has_value());
}

TEST_F(CcclCallable, FailedAllocationIsErrorOfCallAndNextCallRetries) {
  const Callable reduce = callable(cccl::reduce<std::int32_t>());
  driver_.fail("cuMemAllocAsync", 1, DriverResult::OutOfMemory);
  EXPECT_FALSE(reduce(call_).has_value());
  EXPECT_TRUE(reduce(call_).has_value());
}

TEST_F(CcclCallable, EmitsEventForEachCall) {
  const Callable reduce = callable(cccl::reduce<std::int32_t>());
  ASSERT_TRUE(reduce(call_).has_value());
  const auto reported = log_.of(Event::Kind::CalledCompiled);
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].warm, true);
  EXPECT_EQ(reported[0].origin, "disk");
  EXPECT_EQ(reported[0].message, "reduce");
  EXPECT_EQ(reported[0].unit, "reduce_sum_i32");
  EXPECT_EQ(reported[0].target, "sm_80");
  EXPECT_EQ(reported[0].task_id, 7U);
  EXPECT_EQ(reported[0].stream, reinterpret_cast<std::uintptr_t>(stream_));
}

}  // namespace
}  // namespace kiln::test
