// SPDX-License-Identifier: Apache-2.0
// Every driver function that CudaDevice calls fails once, at every call. The result is an error value, and nothing
// leaks.
#include <utility>
#include <vector>

#include "backends/cuda/cuda_test.hpp"

namespace kiln::test {
namespace {

using cuda::DriverResult;

/// All operations of a device, until one fails.
class Scenario {
 public:
  Scenario() : device_({FakeCudaDriver::path(), {}}) {}
  ~Scenario() {
    // A caller can retry a failed release.
    if (memory_ != nullptr && !device_.release(memory_, 64, stream_)) (void)device_.release(memory_, 64, stream_);
    if (stream_ != nullptr && !device_.release_stream(stream_)) (void)device_.release_stream(stream_);
  }
  Scenario(const Scenario&) = delete;
  Scenario& operator=(const Scenario&) = delete;

  void run(const Artifact& artifact) {
    (void)device_.devices().value();
    device_.make_current(0).value();
    (void)device_.current_context().value();
    stream_ = device_.create_stream().value();
    memory_ = device_.allocate(64, stream_).value();
    const auto kernel = device_.load(artifact).value()->kernel("saxpy").value();
    kernel->prepare(stream_).value();
    (void)kernel->function().value();
    (void)kernel->occupancy(0).value();
    std::vector<float> values(16, 1);
    device_.copy_to_device(memory_, values.data(), 64, stream_).value();
    const unsigned n = 16;
    const float a = 2;
    const Argument arguments[] = {argument_of(n), argument_of(a), argument_of(memory_), argument_of(memory_)};
    const LaunchConfig config(Grid(1), Block(16), StreamRef::from_native(stream_), 64 << 10);
    kernel->launch(config, arguments, 4).value();
    device_.synchronize(stream_).value();
    device_.copy_to_host(values.data(), memory_, 64, stream_).value();
    EXPECT_EQ(values, std::vector<float>(16, 3));
    void* const memory = std::exchange(memory_, nullptr);
    if (Status released = device_.release(memory, 64, stream_); !released) {
      memory_ = memory;
      released.value();
    }
    void* const stream = std::exchange(stream_, nullptr);
    if (Status released = device_.release_stream(stream); !released) {
      stream_ = stream;
      released.value();
    }
  }

 private:
  CudaDevice device_;
  void* stream_ = nullptr;
  void* memory_ = nullptr;
};

class CudaFaults : public CudaTest {
 protected:
  /// Returns true if all operations succeeded.
  bool run() {
    try {
      Scenario scenario;
      scenario.run(artifact());
      return true;
    } catch (const ResultError& error) {
      EXPECT_FALSE(error.error().message.empty());
      return false;
    }
  }
};

TEST_F(CudaFaults, EachFaultIsAnErrorWithoutLeaks) {
  ASSERT_TRUE(run());
  std::map<std::string, std::size_t> calls;
  cuda::DriverFunctions functions;
  for_each_function(functions, [&](auto&, const char* name, int) { calls[name] = driver_.calls(name); });
  std::size_t used = 0;
  std::size_t faults = 0;
  for (const auto& [name, count] : calls) {
    used += count != 0 ? 1 : 0;
    // These two are called after the last user is gone, so that their failure cannot be reported or handled.
    const bool at_the_end = name == "cuLibraryUnload" || name == "cuDevicePrimaryCtxRelease";
    for (unsigned nth = 1; nth <= count; ++nth, ++faults) {
      reset("sm_80");
      driver_.fail(name, nth, DriverResult::Unknown);
      const bool went_well = run();
      // A capture mode that could not be restored is restored by a second try.
      EXPECT_TRUE(!went_well || at_the_end || name == "cuThreadExchangeStreamCaptureMode") << name << " " << nth;
      if (!at_the_end) {
        EXPECT_EQ(driver_.leaks(), 0U) << name << " " << nth;
      }
      EXPECT_EQ(driver_.counts().relaxed_threads, 0U) << name << " " << nth;
      EXPECT_EQ(driver_.stale_uses(), 0U) << name << " " << nth;
    }
  }
  EXPECT_GE(used, 25U);
  RecordProperty("functions", static_cast<int>(used));
  RecordProperty("faults", static_cast<int>(faults));
}

TEST_F(CudaFaults, LaunchErrorContainsDriverText) {
  CudaDevice device(options());
  ASSERT_TRUE(device.make_current(0).has_value());
  const auto kernel = saxpy_of(device, artifact());
  const std::map<DriverResult, Code> expected = {{DriverResult::LaunchOutOfResources, Code::InvalidArgument},
                                                 {DriverResult::NotSupported, Code::Unsupported},
                                                 {DriverResult::IllegalAddress, Code::Unavailable},
                                                 {DriverResult::CaptureUnsupported, Code::Capturing},
                                                 {DriverResult::ContextIsDestroyed, Code::Unavailable}};
  for (const auto& [result, code] : expected) {
    driver_.fail("cuLaunchKernelEx", 1, result);
    const Status launched = launch_nothing(*kernel, nullptr);
    ASSERT_FALSE(launched.has_value());
    EXPECT_EQ(launched.error().code, code) << launched.error().message;
    const std::string number = "(" + std::to_string(static_cast<int>(result)) + ")";
    EXPECT_NE(launched.error().message.find("cuLaunchKernelEx failed with CUDA_ERROR_"), std::string::npos);
    EXPECT_NE(launched.error().message.find(number), std::string::npos) << launched.error().message;
  }
  EXPECT_TRUE(launch_nothing(*kernel, nullptr).has_value());
}

}  // namespace
}  // namespace kiln::test
