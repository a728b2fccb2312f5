// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "backends/device.hpp"
#include "support/fixtures/device_floats.hpp"

namespace kiln::test {

/// Requirements of every `Device` implementation. An implementation instantiates the suite with its own harness:
///
///   INSTANTIATE_TEST_SUITE_P(OpenCl, DeviceConformance, testing::Values(DeviceHarness{"opencl", &make_opencl_setup}));
class DeviceSetup {
 public:
  virtual ~DeviceSetup() = default;
  /// Opens another device object on the same driver.
  virtual std::unique_ptr<Device> open(Allocator allocator) = 0;
  /// Returns examples/kernels/saxpy.cl, or the same in another language, with its entries `saxpy` and `scale`, compiled
  /// for the first device. A test shortens it by 100 bytes, so that it must be longer.
  virtual Artifact artifact() = 0;
  /// Returns more bytes than the device has.
  virtual std::size_t too_much() = 0;
};

struct DeviceHarness {
  std::string name;
  std::function<std::unique_ptr<DeviceSetup>()> make;
  /// True if each thread must make a context current.
  bool contexts_are_per_thread = false;

  friend std::ostream& operator<<(std::ostream& out, const DeviceHarness& harness) { return out << harness.name; }
};

class DeviceConformance : public testing::TestWithParam<DeviceHarness> {
 protected:
  void SetUp() override {
    setup_ = GetParam().make();
    device_ = setup_->open({});
    artifact_ = setup_->artifact();
    ASSERT_TRUE(device_->make_current(0).has_value());
    stream_ = device_->create_stream().value();
  }
  void TearDown() override {
    if (stream_ != nullptr) {
      EXPECT_TRUE(device_->release_stream(stream_).has_value());
    }
  }

  std::shared_ptr<DeviceKernel> kernel(const char* entry = "saxpy") {
    return device_->load(artifact_).value()->kernel(*artifact_.symbol(entry)).value();
  }
  LaunchConfig sizes(unsigned grid, unsigned block) const {
    return {Grid(grid), Block(block), StreamRef::from_native(stream_)};
  }
  /// Launches y = a x + y and returns y. Throws to end the test.
  static std::vector<float> saxpy(Device& device, DeviceKernel& kernel, const LaunchConfig& config, float a,
                                  const std::vector<float>& x, const std::vector<float>& y) {
    const DeviceFloats xs(device, config.stream.native(), x);
    const DeviceFloats ys(device, config.stream.native(), y);
    const auto n = static_cast<unsigned>(x.size());
    const Argument arguments[] = {argument_of(n), argument_of(a), xs.argument(), ys.argument()};
    kernel.launch(config, arguments, 4).value();
    device.synchronize(config.stream.native()).value();
    return ys.values();
  }
  Code rejection(const std::string& bytes) {
    Artifact other = artifact_;
    other.bytes = Bytes::of(bytes);
    const auto loaded = device_->load(other);
    EXPECT_FALSE(loaded.has_value()) << bytes.size() << " bytes were loaded";
    return loaded.has_value() ? Code::Internal : loaded.error().code;
  }

  std::unique_ptr<DeviceSetup> setup_;
  std::unique_ptr<Device> device_;
  Artifact artifact_;
  void* stream_ = nullptr;
};

TEST_P(DeviceConformance, ListsDevicesWithTargets) {
  const auto devices = device_->devices();
  ASSERT_TRUE(devices.has_value()) << devices.error().message;
  ASSERT_FALSE(devices->empty());
  for (const DeviceInfo& info : *devices) {
    EXPECT_FALSE(info.name.empty());
    EXPECT_FALSE(info.target.architecture.empty());
    EXPECT_GT(info.units, 0U);
    EXPECT_GT(info.memory, 0U);
  }
  EXPECT_EQ(devices->front().target, artifact_.target);
}

TEST_P(DeviceConformance, CurrentReportsDeviceOfThread) {
  const auto place = device_->current_context();
  ASSERT_TRUE(place.has_value()) << place.error().message;
  EXPECT_EQ(place->device, 0U);
  EXPECT_EQ(place->target, device_->devices()->front().target);
  EXPECT_EQ(device_->current_context()->context, place->context);
}

TEST_P(DeviceConformance, ThreadHasContextOnlyAfterMakingOneCurrentAndNeedsNoneToLoad) {
  std::thread([this] {
    const auto place = device_->current_context();
    EXPECT_EQ(place.has_value(), !GetParam().contexts_are_per_thread);
    if (!place.has_value()) {
      EXPECT_EQ(place.error().code, Code::Unavailable);
    }
    EXPECT_TRUE(device_->load(artifact_).has_value());
    EXPECT_EQ(device_->current_context().has_value(), place.has_value()) << "loading made a context current";
    ASSERT_TRUE(device_->make_current(0).has_value());
    EXPECT_TRUE(device_->current_context().has_value());
  }).join();
}

TEST_P(DeviceConformance, MissingDeviceCannotBeMadeCurrent) {
  const Status made = device_->make_current(device_->devices()->size());
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, Code::InvalidArgument);
  EXPECT_EQ(device_->current_context()->device, 0U);
}

TEST_P(DeviceConformance, BytesThatAreNotAProgramAreRejected) {
  EXPECT_EQ(rejection(""), Code::LoadRejected);
  EXPECT_EQ(rejection("x"), Code::LoadRejected);
  EXPECT_EQ(rejection("these bytes were never a program of any kind"), Code::LoadRejected);
  EXPECT_EQ(rejection(std::string(10'000, '\0')), Code::LoadRejected);
  EXPECT_TRUE(device_->load(artifact_).has_value()) << "the device is unusable after a rejection";
}

TEST_P(DeviceConformance, TruncatedBytesAreRejected) {
  const std::string whole(artifact_.bytes.view());
  for (const std::size_t size : {std::size_t{8}, std::size_t{50}, whole.size() / 4, whole.size() / 2,
                                 whole.size() * 7 / 8, whole.size() - 100}) {
    EXPECT_EQ(rejection(whole.substr(0, size)), Code::LoadRejected) << size;
  }
}

TEST_P(DeviceConformance, ArtifactForAnotherDeviceIsRejected) {
  Artifact other = artifact_;
  other.target.architecture = "nowhere:a device of no machine";
  other.target.form = artifact_.target.form == Form::Cubin ? Form::OpenClBinary : Form::Cubin;
  const auto loaded = device_->load(other);
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().code, Code::LoadRejected) << loaded.error().message;
}

TEST_P(DeviceConformance, MissingSymbolIsNamed) {
  const auto module = device_->load(artifact_).value();
  for (const char* symbol : {"no_such_kernel", ""}) {
    const auto kernel = module->kernel(symbol);
    ASSERT_FALSE(kernel.has_value());
    EXPECT_EQ(kernel.error().code, Code::InvalidArgument);
    EXPECT_NE(kernel.error().message.find(symbol), std::string::npos) << kernel.error().message;
  }
}

TEST_P(DeviceConformance, ReturnsNativeHandles) {
  const auto one = kernel("saxpy");
  const auto other = kernel("scale");
  EXPECT_NE(one->native(), nullptr);
  EXPECT_NE(one->native(), other->native());
  const auto function = one->function();
  ASSERT_TRUE(function.has_value()) << function.error().message;
  EXPECT_NE(*function, nullptr);
}

TEST_P(DeviceConformance, PreparingAgainDoesNothing) {
  const auto prepared = kernel();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(prepared->prepare(stream_).has_value());
  EXPECT_EQ(saxpy(*device_, *prepared, sizes(1, 4), 2, {1, 2, 3}, {10, 20, 30}), (std::vector<float>{12, 24, 36}));
}

TEST_P(DeviceConformance, LaunchUsesItsArguments) {
  const auto launched = kernel();
  std::vector<float> x(1000);
  std::vector<float> y(1000);
  std::vector<float> expected(1000);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i);
    y[i] = static_cast<float>(3 * i);
    expected[i] = 5 * x[i];
  }
  EXPECT_EQ(saxpy(*device_, *launched, sizes(16, 64), 2, x, y), expected);
  expected.assign(expected.size(), 0);
  EXPECT_EQ(saxpy(*device_, *launched, sizes(8, 128), -3, x, y), expected);
}

TEST_P(DeviceConformance, KernelOutlivesModule) {
  auto module = device_->load(artifact_).value();
  const auto kept = module->kernel(*artifact_.symbol("saxpy")).value();
  module.reset();
  EXPECT_EQ(saxpy(*device_, *kept, sizes(1, 4), 2, {1, 2, 3}, {10, 20, 30}), (std::vector<float>{12, 24, 36}));
}

TEST_P(DeviceConformance, OneArtifactCanBeLoadedTwiceIndependently) {
  auto first = kernel();
  const auto second = kernel();
  first.reset();
  // A size that was not launched yet, so that a driver that defers part of its work does it now.
  EXPECT_EQ(saxpy(*device_, *second, sizes(1, 3), 2, {1, 2, 3}, {10, 20, 30}), (std::vector<float>{12, 24, 36}));
}

TEST_P(DeviceConformance, KernelCanBeReleasedAfterDevice) {
  auto other = setup_->open({});
  auto kept = other->load(artifact_).value()->kernel(*artifact_.symbol("saxpy")).value();
  other.reset();
  EXPECT_NE(kept->native(), nullptr);
  kept.reset();
}

TEST_P(DeviceConformance, WrongArgumentsAreRejectedWithoutLaunch) {
  const auto refusing = kernel();
  const DeviceFloats xs(*device_, stream_, {1, 1, 1});
  const DeviceFloats ys(*device_, stream_, {7, 8, 9});
  const unsigned n = 3;
  const float a = 2;
  const double wide = 2;
  const unsigned char narrow = 2;
  const std::vector<std::vector<Argument>> wrong = {
      {},
      {argument_of(n), argument_of(a), xs.argument()},
      {argument_of(n), argument_of(a), xs.argument(), ys.argument(), argument_of(n)},
      {argument_of(n), argument_of(wide), xs.argument(), ys.argument()},
      {argument_of(narrow), argument_of(a), xs.argument(), ys.argument()},
      {argument_of(n), argument_of(a), xs.argument(), argument_of(n)},
      {Argument{&n, 0}, argument_of(a), xs.argument(), ys.argument()},
      {Argument{nullptr, 4}, argument_of(a), xs.argument(), ys.argument()},
  };
  for (const std::vector<Argument>& arguments : wrong) {
    const Status launched = refusing->launch(sizes(1, 4), arguments.data(), arguments.size());
    ASSERT_FALSE(launched.has_value()) << arguments.size();
    EXPECT_EQ(launched.error().code, Code::InvalidArgument) << launched.error().message;
  }
  ASSERT_TRUE(device_->synchronize(stream_).has_value());
  EXPECT_EQ(ys.values(), (std::vector<float>{7, 8, 9}));
  EXPECT_EQ(saxpy(*device_, *refusing, sizes(1, 4), 2, {1, 2, 3}, {10, 20, 30}), (std::vector<float>{12, 24, 36}));
}

TEST_P(DeviceConformance, EmptyAndInvalidSizesAreRejected) {
  const auto refusing = kernel("scale");
  const DeviceFloats xs(*device_, stream_, {1, 2, 3});
  const unsigned n = 3;
  const float a = 2;
  const Argument arguments[] = {argument_of(n), argument_of(a), xs.argument()};
  for (const LaunchConfig& config : {sizes(0, 4), sizes(1, 0), sizes(1, 1U << 20)}) {
    const Status launched = refusing->launch(config, arguments, 3);
    ASSERT_FALSE(launched.has_value());
    EXPECT_EQ(launched.error().code, Code::InvalidArgument) << launched.error().message;
  }
  EXPECT_EQ(xs.values(), (std::vector<float>{1, 2, 3}));
}

TEST_P(DeviceConformance, OccupancyReturnsLaunchableSize) {
  const auto asked = kernel();
  const auto occupancy = asked->occupancy(0);
  ASSERT_TRUE(occupancy.has_value()) << occupancy.error().message;
  EXPECT_GE(occupancy->block_size, 1U);
  EXPECT_LE(occupancy->block_size, 1U << 16);
  EXPECT_GE(occupancy->min_grid_size, 1U);
  EXPECT_EQ(saxpy(*device_, *asked, sizes(occupancy->min_grid_size, occupancy->block_size), 2, {1, 2, 3}, {10, 20, 30}),
            (std::vector<float>{12, 24, 36}));
}

TEST_P(DeviceConformance, MemoryRoundTripsCopiedBytes) {
  std::vector<float> values(100'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 3;
  const DeviceFloats one(*device_, stream_, values);
  const DeviceFloats other(*device_, stream_, {1, 2, 3});
  EXPECT_EQ(one.values(), values);
  EXPECT_EQ(other.values(), (std::vector<float>{1, 2, 3}));
}

TEST_P(DeviceConformance, EmptyCopySucceeds) {
  const DeviceFloats values(*device_, stream_, {1});
  void* memory = nullptr;
  std::memcpy(&memory, values.argument().data, sizeof memory);
  char none = 0;
  EXPECT_TRUE(device_->copy_to_device(memory, &none, 0, stream_).has_value());
  EXPECT_TRUE(device_->copy_to_host(&none, memory, 0, stream_).has_value());
}

TEST_P(DeviceConformance, OutOfMemoryIsErrorAndDeviceStaysUsable) {
  const auto memory = device_->allocate(setup_->too_much(), stream_);
  ASSERT_FALSE(memory.has_value());
  EXPECT_EQ(memory.error().code, Code::Unavailable) << memory.error().message;
  const auto none = device_->allocate(0, stream_);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, Code::InvalidArgument);
  const DeviceFloats some(*device_, stream_, {1, 2});
  EXPECT_EQ(some.values(), (std::vector<float>{1, 2}));
}

TEST_P(DeviceConformance, CustomAllocatorServesAllAllocations) {
  struct Call {
    void* memory;
    std::size_t bytes;
    void* stream;
    bool operator==(const Call&) const = default;
  };
  std::vector<Call> allocated;
  std::vector<Call> released;
  char memory[2];  // never accessed: a device only passes on the pointer of the allocator
  const auto device = setup_->open({[&](std::size_t bytes, StreamRef stream) -> Result<void*> {
                                      if (allocated.size() == 2) return Error{Code::Unavailable, "two are enough", {}};
                                      allocated.push_back({&memory[allocated.size()], bytes, stream.native()});
                                      return allocated.back().memory;
                                    },
                                    [&](void* given, std::size_t bytes, StreamRef stream) {
                                      released.push_back({given, bytes, stream.native()});
                                    }});
  ASSERT_TRUE(device->make_current(0).has_value());
  for (const std::size_t bytes : {100U, 200U}) ASSERT_TRUE(device->allocate(bytes, stream_).has_value());
  const auto third = device->allocate(300, stream_);
  ASSERT_FALSE(third.has_value());
  EXPECT_EQ(third.error().code, Code::Unavailable);
  EXPECT_NE(third.error().message.find("two are enough"), std::string::npos) << third.error().message;
  for (const Call& call : allocated) EXPECT_TRUE(device->release(call.memory, call.bytes, call.stream).has_value());
  EXPECT_EQ(allocated, (std::vector<Call>{{&memory[0], 100, stream_}, {&memory[1], 200, stream_}}));
  EXPECT_EQ(released, allocated);
}

TEST_P(DeviceConformance, IncompleteAllocatorIsError) {
  const auto device = setup_->open({[](std::size_t, StreamRef) -> Result<void*> { return nullptr; }, nullptr});
  ASSERT_TRUE(device->make_current(0).has_value());
  const auto memory = device->allocate(100, stream_);
  ASSERT_FALSE(memory.has_value());
  EXPECT_EQ(memory.error().code, Code::InvalidArgument);
}

TEST_P(DeviceConformance, StreamsAreIndependentAndRecordNothing) {
  void* other = device_->create_stream().value();
  EXPECT_NE(other, stream_);
  const auto recording = device_->capturing(other);
  ASSERT_TRUE(recording.has_value());
  EXPECT_FALSE(*recording);
  const auto launched = kernel();
  LaunchConfig there = sizes(1, 4);
  there.stream = StreamRef::from_native(other);
  EXPECT_EQ(saxpy(*device_, *launched, there, 2, {1}, {1}), (std::vector<float>{3}));
  EXPECT_TRUE(device_->release_stream(other).has_value());
  EXPECT_EQ(saxpy(*device_, *launched, sizes(1, 4), 2, {1}, {1}), (std::vector<float>{3}));
}

TEST_P(DeviceConformance, EightThreadsLaunchOneKernelWithOwnResults) {
  const auto shared = kernel();
  std::vector<std::thread> threads;
  for (int number = 1; number <= 8; ++number) {
    threads.emplace_back([this, &shared, number] {
      ASSERT_TRUE(device_->make_current(0).has_value());
      LaunchConfig config = sizes(2, 32);
      config.stream = StreamRef::from_native(device_->create_stream().value());
      const auto a = static_cast<float>(number);
      for (int round = 0; round < 25; ++round) {
        ASSERT_EQ(saxpy(*device_, *shared, config, a, std::vector<float>(50, 2), std::vector<float>(50, 1)),
                  std::vector<float>(50, 2 * a + 1));
      }
      EXPECT_TRUE(device_->release_stream(config.stream.native()).has_value());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(DeviceConformance, ThreadsCanLoadConcurrently) {
  std::vector<std::thread> threads;
  for (int number = 0; number < 8; ++number) {
    threads.emplace_back([this] {
      ASSERT_TRUE(device_->make_current(0).has_value());
      LaunchConfig config = sizes(1, 4);
      config.stream = StreamRef::from_native(device_->create_stream().value());
      EXPECT_EQ(saxpy(*device_, *kernel(), config, 2, {1, 2}, {1, 1}), (std::vector<float>{3, 5}));
      EXPECT_TRUE(device_->release_stream(config.stream.native()).has_value());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace kiln::test
