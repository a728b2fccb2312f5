// SPDX-License-Identifier: Apache-2.0
// The C interface with CUDA units, really compiled by NVRTC and loaded into the driver double, which runs no device
// code.
#include <kiln/kiln.h>

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/fakes/cuda_driver/control.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/toolkit.hpp"

namespace kiln::test {
namespace {

using cuda::DriverResult;
using cuda::LaunchAttributeId;

constexpr std::int64_t kMinute = 60'000'000'000;

// Counts the calls of an allocator's functions and records what they returned.
struct Account {
  FakeCudaDriver* driver = nullptr;
  std::size_t allocated = 0;
  std::size_t released = 0;
  int freed = 0;
};

class CApiCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    ASSERT_EQ(kiln_options_new(&options_, nullptr), KILN_OK);
    set("cache.dir", cache_.path("cache"));
    set("driver", FakeCudaDriver::path());
    set("nvrtc", toolkit_nvrtc());
    const std::string source = repository_text("examples/kernels/saxpy.cu");
    ASSERT_EQ(kiln_unit_cuda("saxpy.cu", source.c_str(), &unit_, nullptr), KILN_OK);
    ASSERT_EQ(kiln_unit_add_entry(unit_, "saxpy", nullptr), KILN_OK);
    ASSERT_EQ(kiln_unit_add_entry(unit_, "scale<float>", nullptr), KILN_OK);
  }
  void TearDown() override { end(); }
  void end() {
    kiln_error_free(std::exchange(error_, nullptr));
    kiln_kernel_free(std::exchange(kernel_, nullptr));
    kiln_stream_free(std::exchange(stream_, nullptr));
    kiln_session_free(std::exchange(session_, nullptr));
    kiln_unit_free(std::exchange(unit_, nullptr));
    kiln_options_free(std::exchange(options_, nullptr));
  }
  void set(const char* name, const std::string& value) {
    ASSERT_EQ(kiln_options_set(options_, name, value.c_str(), 1, nullptr), KILN_OK);
  }
  void open() {
    ASSERT_EQ(kiln_session_open(options_, &session_, nullptr), KILN_OK);
    ASSERT_EQ(kiln_session_make_current(session_, KILN_BACKEND_CUDA, 0, &error_), KILN_OK)
        << kiln_error_message(error_);
    ASSERT_EQ(kiln_stream_new(session_, KILN_BACKEND_CUDA, &stream_, &error_), KILN_OK) << kiln_error_message(error_);
  }
  kiln_code get() { return kiln_session_get(session_, unit_, "saxpy", kMinute, &kernel_, &error_); }

  TemporaryDirectory cache_;
  FakeCudaDriver driver_{"sm_90"};
  kiln_options* options_ = nullptr;
  kiln_session* session_ = nullptr;
  kiln_unit* unit_ = nullptr;
  kiln_stream* stream_ = nullptr;
  kiln_kernel* kernel_ = nullptr;
  kiln_error* error_ = nullptr;
};

TEST_F(CApiCuda, LaunchPassesEveryFieldToDriver) {
  open();
  ASSERT_EQ(get(), KILN_OK) << kiln_error_message(error_);
  kiln_launch_attribute raw{};
  raw.id = static_cast<unsigned>(LaunchAttributeId::MemorySyncDomain);
  raw.value[0] = 1;
  kiln_launch how{};
  how.size = sizeof how;
  how.stream = kiln_stream_native(stream_);
  how.grid = {4, 2, 1};
  how.block = {64, 1, 1};
  how.shared_bytes = 1000;
  how.cluster = {2, 1, 1};
  how.cooperative = 1;
  how.programmatic = 1;
  how.priority = -3;
  how.attributes = &raw;
  how.attribute_count = 1;
  const unsigned n = 7;
  const float a = 2.5F;
  void* const x = nullptr;
  const kiln_argument arguments[] = {{&n, sizeof n}, {&a, sizeof a}, {&x, sizeof x}, {&x, sizeof x}};
  ASSERT_EQ(kiln_kernel_launch(kernel_, &how, arguments, 4, &error_), KILN_OK) << kiln_error_message(error_);

  const FakeCudaDriver::Launch launch = driver_.launches().at(0);
  EXPECT_EQ(launch.kernel, "saxpy");
  EXPECT_EQ(launch.stream, how.stream);
  EXPECT_EQ(std::vector<unsigned>(launch.grid, launch.grid + 3), (std::vector<unsigned>{4, 2, 1}));
  EXPECT_EQ(std::vector<unsigned>(launch.block, launch.block + 3), (std::vector<unsigned>{64, 1, 1}));
  EXPECT_EQ(launch.shared_bytes, 1000U);
  EXPECT_EQ(launch.argument<unsigned>(0), n);
  EXPECT_EQ(launch.argument<float>(1), a);
  std::map<LaunchAttributeId, int> values;
  for (const cuda::DriverLaunchAttribute& attribute : launch.attributes) {
    std::memcpy(&values[attribute.id], attribute.value, sizeof(int));
  }
  const std::map<LaunchAttributeId, int> expected = {{LaunchAttributeId::ClusterDimension, 2},
                                                     {LaunchAttributeId::Cooperative, 1},
                                                     {LaunchAttributeId::ProgrammaticSerialization, 1},
                                                     {LaunchAttributeId::Priority, -3},
                                                     {LaunchAttributeId::MemorySyncDomain, 1}};
  EXPECT_EQ(values, expected);
  void* function = nullptr;
  EXPECT_EQ(kiln_kernel_function(kernel_, &function, nullptr), KILN_OK);
  EXPECT_NE(function, nullptr);
}

TEST_F(CApiCuda, KernelNotReadyDuringCaptureIsError) {
  open();
  const auto stream = static_cast<cuda::Stream>(kiln_stream_native(stream_));
  ASSERT_EQ(driver_.application().StreamBeginCapture(stream, cuda::CaptureMode::Global), DriverResult::Success);
  kiln_get_options wait{};
  wait.size = sizeof wait;
  wait.timeout_ns = kMinute;
  wait.on_stream = 1;
  wait.stream = stream;
  EXPECT_EQ(kiln_session_get_ex(session_, unit_, "saxpy", &wait, &kernel_, &error_), KILN_CAPTURING);
  EXPECT_EQ(kernel_, nullptr);
  EXPECT_EQ(kiln_error_code(error_), KILN_CAPTURING);
  GraphPointer graph = nullptr;
  EXPECT_EQ(driver_.application().StreamEndCapture(stream, &graph), DriverResult::Success);
  EXPECT_EQ(driver_.application().GraphDestroy(graph), DriverResult::Success);
}

TEST_F(CApiCuda, NullStreamOfGetOptionsIsError) {
  open();
  kiln_get_options wait{};
  wait.size = sizeof wait;
  wait.timeout_ns = kMinute;
  wait.on_stream = 1;
  EXPECT_EQ(kiln_session_get_ex(session_, unit_, "saxpy", &wait, &kernel_, &error_), KILN_INVALID_ARGUMENT);
  EXPECT_EQ(kernel_, nullptr);
}

TEST_F(CApiCuda, BytesAreAvailableForCodeRejectedByDriver) {
  driver_.fail("cuLibraryLoadData", 1, DriverResult::NoBinaryForGpu, 1000);
  open();
  kiln_artifact* artifact = nullptr;
  ASSERT_EQ(kiln_session_artifact(session_, unit_, "sm_90", KILN_FOREVER, &artifact, nullptr), KILN_OK);
  EXPECT_EQ(kiln_artifact_form(artifact), KILN_FORM_CUBIN);
  EXPECT_STREQ(kiln_artifact_target(artifact), "sm_90");
  EXPECT_EQ(std::memcmp(kiln_artifact_data(artifact), "\177ELF", 4), 0);
  EXPECT_EQ(std::string(kiln_artifact_symbol(artifact, "scale<float>")).rfind("_Z", 0), 0U);
  kiln_artifact_free(artifact);
  EXPECT_EQ(get(), KILN_LOAD_REJECTED) << kiln_error_message(error_);
}

TEST_F(CApiCuda, UsesAllocatorOfProgramAndReleasesUserDataOnce) {
  Account account{&driver_};
  kiln_allocator allocator{};
  allocator.size = sizeof allocator;
  allocator.backend = KILN_BACKEND_CUDA;
  allocator.user_data = &account;
  allocator.allocate = [](std::size_t bytes, void* stream, void* user) -> void* {
    auto& said = *static_cast<Account*>(user);
    if (bytes > 1000) return nullptr;
    said.allocated += bytes;
    cuda::DevicePointer memory = 0;
    said.driver->driver().MemAllocAsync(&memory, bytes, static_cast<cuda::Stream>(stream));
    return reinterpret_cast<void*>(memory);
  };
  allocator.release = [](void* memory, std::size_t bytes, void* stream, void* user) {
    auto& said = *static_cast<Account*>(user);
    said.released += bytes;
    said.driver->driver().MemFreeAsync(reinterpret_cast<cuda::DevicePointer>(memory),
                                       static_cast<cuda::Stream>(stream));
  };
  allocator.last_error = [](void*) -> const char* { return "a thousand bytes are enough"; };
  allocator.free_user_data = [](void* user) { ++static_cast<Account*>(user)->freed; };
  ASSERT_EQ(kiln_options_allocator(options_, &allocator, nullptr), KILN_OK);
  open();
  kiln_buffer* buffer = nullptr;
  ASSERT_EQ(kiln_buffer_new(stream_, "some bytes", 10, &buffer, &error_), KILN_OK) << kiln_error_message(error_);
  kiln_buffer* larger = nullptr;
  EXPECT_NE(kiln_buffer_new(stream_, nullptr, 1001, &larger, &error_), KILN_OK);
  EXPECT_NE(std::strstr(kiln_error_message(error_), "a thousand bytes"), nullptr) << kiln_error_message(error_);
  kiln_buffer_free(buffer);
  EXPECT_EQ(account.allocated, 10U);
  EXPECT_EQ(account.released, 10U);
  EXPECT_EQ(account.freed, 0);
  end();
  EXPECT_EQ(account.freed, 1);
}

}  // namespace
}  // namespace kiln::test
