// The driver double itself: that it refuses what a driver refuses, since the tests of CudaDevice rely on it.
#include "driver_double_fixture.hpp"

#include <thread>

namespace kiln::test {
namespace {

using cuda::as_function;
using cuda::Context;
using cuda::DevicePointer;
using cuda::Function;
using cuda::Kernel;
using cuda::LaunchConfig;
using cuda::Library;
using cuda::Stream;

/// A double with two architectures, and the primary context of device 0 (an sm_80) current.
class DriverDoubleTest : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    ASSERT_EQ(cu.Init(0), DriverResult::Success);
    context_ = primary(0);
    ASSERT_EQ(cu.CtxSetCurrent(context_), DriverResult::Success);
  }
  Context primary(int device) {
    Context context = nullptr;
    EXPECT_EQ(cu.DevicePrimaryCtxRetain(&context, device), DriverResult::Success);
    return context;
  }
  DriverResult load(const std::string& image, Library* library) {
    return cu.LibraryLoadData(library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  }
  Library loaded(const Target& target = Target::sm(80)) {
    Library library = nullptr;
    EXPECT_EQ(load(compiled_kernels(target), &library), DriverResult::Success);
    return library;
  }
  Kernel kernel(Library library, const char* name) {
    Kernel found = nullptr;
    EXPECT_EQ(cu.LibraryGetKernel(&found, library, name), DriverResult::Success) << name;
    return found;
  }
  Stream stream(unsigned flags = cuda::kStreamNonBlocking) {
    Stream made = nullptr;
    EXPECT_EQ(cu.StreamCreate(&made, flags), DriverResult::Success);
    return made;
  }
  DevicePointer memory(std::size_t bytes) {
    DevicePointer made = 0;
    EXPECT_EQ(app.MemAlloc(&made, bytes), DriverResult::Success);
    return made;
  }
  DriverResult launch_nothing(Kernel nothing, Stream on) {
    LaunchConfig config;
    config.stream = on;
    return cu.LaunchKernelEx(&config, as_function(nothing), nullptr, nullptr);
  }
  std::vector<std::pair<std::size_t, std::size_t>> parameters(Kernel of) {
    std::vector<std::pair<std::size_t, std::size_t>> found;
    std::size_t offset = 0;
    std::size_t size = 0;
    while (cu.KernelGetParamInfo(of, found.size(), &offset, &size) == DriverResult::Success) {
      found.emplace_back(offset, size);
    }
    return found;
  }

  DriverDouble double_{"sm_80,sm_80,sm_90,sm_90"};
  const cuda::DriverFunctions cu = double_.driver();
  const ApplicationFunctions app = double_.application();
  Context context_ = nullptr;
};

TEST_F(DriverDoubleTest, KnowsTheParametersOfARealCubin) {
  for (const int architecture : {80, 90}) {
    const Library library = loaded(Target::sm(architecture));
    using List = std::vector<std::pair<std::size_t, std::size_t>>;
    EXPECT_EQ(parameters(kernel(library, "saxpy")), (List{{0, 4}, {4, 4}, {8, 8}, {16, 8}}));
    EXPECT_EQ(parameters(kernel(library, "mixed")), (List{{0, 1}, {8, 8}, {16, 8}, {24, 300}}));
    EXPECT_EQ(parameters(kernel(library, "huge")), (List{{0, 8000}, {8000, 8}}));
    EXPECT_EQ(parameters(kernel(library, "nothing")), List{});
  }
}

}  // namespace
}  // namespace kiln::test
