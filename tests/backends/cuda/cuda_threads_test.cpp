// SPDX-License-Identifier: Apache-2.0
// Many threads, devices and contexts at the same time, on the driver double.
#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "backends/cuda/cuda_test.hpp"
#include "base/mutex.hpp"

namespace kiln::test {
namespace {

using cuda::DriverResult;

class CudaThreads : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    reset("sm_80,sm_80,sm_90,sm_90");
  }
  /// Computes y = a x + y in the calling thread's current context and checks it; returns false if any step fails.
  static bool works(Device& device, DeviceKernel& kernel, float a) {
    const auto stream = device.create_stream();
    if (!stream) return false;
    const auto memory = device.allocate(64, *stream);
    bool good = memory.has_value();
    if (good) {
      std::vector<float> values(16, 3);
      const unsigned n = 16;
      const LaunchConfig config(Grid(1), Block(16), StreamRef::from_native(*stream));
      const Argument arguments[] = {argument_of(n), argument_of(a), argument_of(*memory), argument_of(*memory)};
      good = device.copy_to_device(*memory, values.data(), 64, *stream).has_value() &&
             kernel.launch(config, arguments, 4).has_value() &&
             device.copy_to_host(values.data(), *memory, 64, *stream).has_value();
      EXPECT_TRUE(!good || values == std::vector<float>(16, 3 * a + 3));
      good = device.release(*memory, 64, *stream).has_value() && good;
    }
    return device.release_stream(*stream).has_value() && good;
  }
};

TEST_F(CudaThreads, EachContextLoadsOnce) {
  CudaDevice device(options());
  const std::map<std::string, std::shared_ptr<DeviceKernel>> kernels = {{"sm_80", saxpy_of(device, artifact(80))},
                                                                        {"sm_90", saxpy_of(device, artifact(90))}};
  cuda::Context extra[2] = {make_context(0), make_context(3)};
  Mutex goodbye;
  bool destroyed = false;
  std::atomic<int> rounds{0};
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 8; ++number) {
    threads.emplace_back([&, number] {
      for (unsigned round = 0; round < 60; ++round, ++rounds) {
        const unsigned where = (number + round) % 6;
        if (where < 4) {
          ASSERT_TRUE(device.make_current(where).has_value());
        } else if (const MutexLock lock(goodbye); where == 4 || !destroyed) {
          driver_.driver().CtxSetCurrent(extra[where - 4]);
        } else {
          continue;
        }
        // The last context is destroyed during the test. A launch there either succeeds or fails.
        if (where == 5) {
          (void)launch_nothing(*kernels.at("sm_90"), nullptr);
          continue;
        }
        const std::string target = device.current_context().value().target.architecture;
        ASSERT_TRUE(works(device, *kernels.at(target), static_cast<float>(number + 1))) << where;
      }
    });
  }
  while (rounds < 200) std::this_thread::yield();
  {
    const MutexLock lock(goodbye);
    destroyed = true;
    EXPECT_EQ(driver_.application().CtxDestroy(extra[1]), DriverResult::Success);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(driver_.stale_uses(), 0U);
  std::map<std::pair<unsigned long long, void*>, int> loads;
  for (const FakeLoad& load : driver_.loads()) ++loads[{load.context, load.library}];
  EXPECT_EQ(loads.size(), 6U) << "one for each of four primary contexts and two others";
  for (const auto& [where, times] : loads) EXPECT_EQ(times, 1);
  EXPECT_EQ(driver_.calls("cuLibraryLoadData"), 2U) << "one for each architecture";
  driver_.application().CtxDestroy(extra[0]);
}

TEST_F(CudaThreads, DestroyedContextIsNotUsedByStaleHandle) {
  CudaDevice device(options());
  const auto kernel = saxpy_of(device, artifact(80));
  std::vector<std::thread> threads;
  for (int number = 0; number < 8; ++number) {
    threads.emplace_back([&, number] {
      for (int round = 0; round < 40; ++round) {
        cuda::Context own = make_context(number % 2);
        EXPECT_TRUE(works(device, *kernel, 2));
        EXPECT_TRUE(works(device, *kernel, 3));
        EXPECT_EQ(driver_.application().CtxDestroy(own), DriverResult::Success);
        EXPECT_FALSE(works(device, *kernel, 2));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(driver_.loads().size(), 320U);
  EXPECT_EQ(driver_.stale_uses(), 0U);
}

TEST_F(CudaThreads, OpenDriverAndContextsConcurrently) {
  CudaDevice device(options());
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 8; ++number) {
    threads.emplace_back([&, number] {
      EXPECT_TRUE(device.make_current(number % 4).has_value());
      EXPECT_EQ(device.current_context()->device, number % 4);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(driver_.calls("cuInit"), 1U);
  EXPECT_EQ(driver_.calls("cuDevicePrimaryCtxRetain"), 4U);
}

}  // namespace
}  // namespace kiln::test
