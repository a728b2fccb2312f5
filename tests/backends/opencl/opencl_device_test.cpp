// SPDX-License-Identifier: Apache-2.0
// OpenClDevice on PoCL, which executes the kernels.
#include "backends/opencl/opencl_device.hpp"

#include "backends/opencl/opencl_compiler.hpp"
#include "backends/opencl/pocl_binary.hpp"
#include "conformance/device_conformance.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/traced_device_setup.hpp"

namespace kiln::test {
namespace {

Artifact compiled(const Unit& unit) {
  OpenClCompiler compiler;
  return compiler.compile(recipe_for(compiler, unit, compiler.device().value().target), {}).value().artifact;
}

// One for all tests, because PoCL takes a second to compile it.
const Artifact& saxpy_artifact() {
  static const Artifact artifact = compiled(
      Unit::opencl("saxpy.cl", repository_text("examples/kernels/saxpy.cl")).with_entry("saxpy").with_entry("scale"));
  return artifact;
}

class OpenClSetup : public DeviceSetup {
 public:
  std::unique_ptr<Device> open(Allocator allocator) override {
    OpenClDevice::Options options;
    options.allocator = std::move(allocator);
    return std::make_unique<OpenClDevice>(std::move(options));
  }
  Artifact artifact() override { return saxpy_artifact(); }
  std::size_t too_much() override { return std::size_t{1} << 45; }
};

/// A context of a program that used OpenCL before kiln.
class ExternalContext {
 public:
  ExternalContext() : library_(OpenClLibrary::open().value()), device_(library_->devices().front().id) {
    context_ = cl().CreateContext(nullptr, 1, &device_, nullptr, nullptr, nullptr);
  }
  ~ExternalContext() { cl().ReleaseContext(context_); }
  ExternalContext(const ExternalContext&) = delete;
  ExternalContext& operator=(const ExternalContext&) = delete;

  const OpenClFunctions& cl() const { return library_->functions(); }
  cl_context context() const { return context_; }
  cl_device_id device() const { return device_; }

 private:
  std::shared_ptr<const OpenClLibrary> library_;
  cl_device_id device_;
  cl_context context_ = nullptr;
};

class ExternalContextSetup : public OpenClSetup {
 public:
  std::unique_ptr<Device> open(Allocator allocator) override {
    return std::make_unique<OpenClDevice>(
        OpenClDevice::Options{external_.context(), external_.device(), std::move(allocator)});
  }

 private:
  ExternalContext external_;
};

template <class Setup>
std::unique_ptr<DeviceSetup> make() {
  return std::make_unique<Setup>();
}

INSTANTIATE_TEST_SUITE_P(OpenCl, DeviceConformance,
                         testing::Values(DeviceHarness{"own context", &make<OpenClSetup>},
                                         DeviceHarness{"given context", &make<ExternalContextSetup>},
                                         DeviceHarness{"observed", &make<TracedDeviceSetup<OpenClSetup>>}));

class OpenClLaunch : public testing::Test {
 protected:
  void SetUp() override { stream_ = device_.create_stream().value(); }
  void TearDown() override { EXPECT_TRUE(device_.release_stream(stream_).has_value()); }

  OpenClDevice device_{{}};
  void* stream_ = nullptr;
};

TEST_F(OpenClLaunch, UnsupportedLaunchOptionsAreRejected) {
  const auto kernel = device_.load(saxpy_artifact()).value()->kernel("scale").value();
  const DeviceFloats xs(device_, stream_, {1, 2, 3});
  const unsigned n = 3;
  const float a = 2;
  const Argument arguments[] = {argument_of(n), argument_of(a), xs.argument()};
  std::vector<LaunchConfig> launches(6, LaunchConfig(Grid(1), Block(4), StreamRef::from_native(stream_)));
  launches[0].shared_bytes = 16;
  launches[1].cluster = {2, 1, 1};
  launches[2].cooperative = true;
  launches[3].programmatic = true;
  launches[4].priority = 1;
  launches[5].attributes.resize(1);
  for (const LaunchConfig& config : launches) {
    const Status launched = kernel->launch(config, arguments, 3);
    ASSERT_FALSE(launched.has_value());
    EXPECT_EQ(launched.error().code, Code::Unsupported) << launched.error().message;
  }
  EXPECT_EQ(xs.values(), (std::vector<float>{1, 2, 3}));
}

TEST_F(OpenClLaunch, ErrorNamesParameterOfWrongArgument) {
  const auto kernel = device_.load(saxpy_artifact()).value()->kernel("scale").value();
  const DeviceFloats xs(device_, stream_, {1, 2, 3});
  const unsigned n = 3;
  const double a = 2;
  const Argument arguments[] = {argument_of(n), argument_of(a), xs.argument()};
  const Status launched = kernel->launch({Grid(1), Block(4), StreamRef::from_native(stream_)}, arguments, 3);
  ASSERT_FALSE(launched.has_value());
  EXPECT_EQ(launched.error().code, Code::InvalidArgument);
  EXPECT_NE(launched.error().message.find("argument 1 of scale, 'float a', with 8 bytes: "), std::string::npos)
      << launched.error().message;
}

// Otherwise a program that exits right after a launch destroys the data that PoCL's thread needs to generate machine
// code.
TEST_F(OpenClLaunch, ReleasingQueueCompletesLaunches) {
  const auto kernel = device_.load(saxpy_artifact()).value()->kernel("scale").value();
  for (unsigned block = 1; block <= 8; ++block) {  // each size is compiled again at its first launch
    const DeviceFloats xs(device_, stream_, {1, 2, 3});
    ASSERT_TRUE(device_.synchronize(stream_).has_value());
    const unsigned n = 3;
    const float a = 2;
    const Argument arguments[] = {argument_of(n), argument_of(a), xs.argument()};
    void* const other = device_.create_stream().value();
    ASSERT_TRUE(kernel->launch({Grid(3), Block(block), StreamRef::from_native(other)}, arguments, 3).has_value());
    ASSERT_TRUE(device_.release_stream(other).has_value());
    EXPECT_EQ(xs.values(), (std::vector<float>{2, 4, 6})) << block;  // by the other queue, which does not wait
  }
}

TEST_F(OpenClLaunch, RejectsCallsWithoutQueue) {
  const auto kernel = device_.load(saxpy_artifact()).value()->kernel("scale").value();
  char byte = 0;
  for (const Status& status :
       {kernel->launch({Grid(1), Block(1), StreamRef::from_native(nullptr)}, nullptr, 0),
        device_.copy_to_device(&byte, &byte, 1, nullptr), device_.copy_to_host(&byte, &byte, 1, nullptr),
        device_.synchronize(nullptr), device_.release_stream(nullptr), device_.release(nullptr, 1, stream_)}) {
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, Code::InvalidArgument) << status.error().message;
  }
}

TEST_F(OpenClLaunch, GlobalSizeIsGridTimesBlockAndLocalMemoryIsArgument) {
  const Artifact artifact = compiled(Unit::opencl("ids.cl",
                                                  "__kernel void ids(__global float* out, __local float* own) {\n"
                                                  "  const size_t x = get_global_id(0), y = get_global_id(1);\n"
                                                  "  const size_t z = get_global_id(2), me = get_local_id(0);\n"
                                                  "  own[me] = 100 * x + 10 * y + z;\n"
                                                  "  barrier(CLK_LOCAL_MEM_FENCE);\n"
                                                  "  out[(z * 3 + y) * 4 + x] = own[me];\n"
                                                  "}\n")
                                         .with_entry("ids"));
  const auto kernel = device_.load(artifact).value()->kernel("ids").value();
  const DeviceFloats out(device_, stream_, std::vector<float>(24, -1));
  const LaunchConfig config(Grid(2, 3, 2), Block(2), StreamRef::from_native(stream_));
  const LocalMemory local{2 * sizeof(float)};
  const Argument arguments[] = {out.argument(), argument_of(local)};
  ASSERT_TRUE(kernel->launch(config, arguments, 2).has_value());
  std::vector<float> expected;
  for (int z = 0; z < 2; ++z) {
    for (int y = 0; y < 3; ++y) {
      for (int x = 0; x < 4; ++x) expected.push_back(static_cast<float>(100 * x + 10 * y + z));
    }
  }
  EXPECT_EQ(out.values(), expected);
}

TEST_F(OpenClLaunch, OccupancyRespectsRequiredWorkGroupSize) {
  const Artifact artifact = compiled(Unit::opencl("fixed.cl",
                                                  "__kernel __attribute__((reqd_work_group_size(8, 2, 1)))\n"
                                                  "void fixed(__global float* out) { out[0] = 1; }\n")
                                         .with_entry("fixed"));
  const auto kernel = device_.load(artifact).value()->kernel("fixed").value();
  EXPECT_EQ(kernel->occupancy(0)->block_size, 16U);
  const auto impossible = kernel->occupancy(std::size_t{1} << 40);
  ASSERT_FALSE(impossible.has_value());
  EXPECT_EQ(impossible.error().code, Code::InvalidArgument);
}

TEST(OpenClDevice, WorksWithContextMemoryAndQueueOfCaller) {
  const ExternalContext external;
  const OpenClFunctions& cl = external.cl();
  cl_command_queue queue = cl.CreateCommandQueue(external.context(), external.device(), 0, nullptr);
  int live = 0;
  OpenClDevice device({external.context(),
                       external.device(),
                       {[&](std::size_t bytes, StreamRef) -> Result<void*> {
                          ++live;
                          return cl.CreateBuffer(external.context(), CL_MEM_READ_WRITE, bytes, nullptr, nullptr);
                        },
                        [&](void* memory, std::size_t, StreamRef) {
                          --live;
                          cl.ReleaseMemObject(static_cast<cl_mem>(memory));
                        }}});
  const auto kernel = device.load(saxpy_artifact()).value()->kernel("scale").value();
  {
    const DeviceFloats xs(device, queue, {1, 2, 3});
    EXPECT_EQ(live, 1);
    const unsigned n = 3;
    const float a = 2;
    const Argument arguments[] = {argument_of(n), argument_of(a), xs.argument()};
    ASSERT_TRUE(kernel->launch({Grid(1), Block(4), queue}, arguments, 3).has_value());
    EXPECT_EQ(xs.values(), (std::vector<float>{2, 4, 6}));
  }
  EXPECT_EQ(live, 0);
  cl.ReleaseCommandQueue(queue);
}

TEST(OpenClDevice, ContextIdsAreUnique) {
  auto one = std::make_unique<OpenClDevice>(OpenClDevice::Options{});
  const std::uint64_t first = one->current_context()->context;
  one.reset();
  OpenClDevice other({});
  EXPECT_NE(other.current_context()->context, first);
}

TEST(OpenClDevice, RejectsContextWithoutDevice) {
  const ExternalContext external;
  OpenClDevice device({external.context(), nullptr, {}});
  const auto place = device.current_context();
  ASSERT_FALSE(place.has_value());
  EXPECT_EQ(place.error().code, Code::InvalidArgument);
}

TEST(TracedDevice, EmitsEventsWithStreamAndBytes) {
  EventLog events;
  TracedDevice device(std::make_unique<OpenClDevice>(OpenClDevice::Options{}), events.emitter());
  void* stream = device.create_stream().value();
  const auto kernel = device.load(saxpy_artifact()).value()->kernel("scale").value();
  {
    const DeviceFloats xs(device, stream, {1, 2, 3});
    const unsigned n = 3;
    const float a = 2;
    const Argument arguments[] = {argument_of(n), argument_of(a), xs.argument()};
    ASSERT_TRUE(kernel->launch({Grid(1), Block(4), StreamRef::from_native(stream)}, arguments, 3).has_value());
    ASSERT_TRUE(device.synchronize(stream).has_value());
    EXPECT_EQ(xs.values(), (std::vector<float>{2, 4, 6}));
  }
  using Kind = Event::Kind;
  const auto number = reinterpret_cast<std::uintptr_t>(stream);
  ASSERT_EQ(events.count(Kind::Copied), 2U);
  EXPECT_EQ(events.of(Kind::Copied)[1].bytes, 12U);
  EXPECT_EQ(events.of(Kind::Copied)[1].stream, number);
  EXPECT_EQ(events.count(Kind::Allocated), 2U);
  EXPECT_EQ(events.count(Kind::Synchronized), 1U);
  EXPECT_TRUE(device.release_stream(stream).has_value());
}

TEST(PoclBinary, IsRejectedAtEveryOtherLength) {
  const std::string_view whole = saxpy_artifact().bytes.view();
  ASSERT_TRUE(check_pocl_binary(whole).has_value());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    ASSERT_FALSE(check_pocl_binary(whole.substr(0, size)).has_value()) << size;
  }
  EXPECT_FALSE(check_pocl_binary(std::string(whole) + "x").has_value());
}

TEST(PoclBinary, RejectsPathEscapesAndUnknownVersions) {
  std::string outside(saxpy_artifact().bytes.view());
  const std::size_t name = outside.find("/program.bc");
  ASSERT_NE(name, std::string::npos);
  outside.replace(name, 4, "/../");
  EXPECT_FALSE(check_pocl_binary(outside).has_value());
  std::string unknown(saxpy_artifact().bytes.view());
  unknown[16] = 99;
  EXPECT_FALSE(check_pocl_binary(unknown).has_value());
}

}  // namespace
}  // namespace kiln::test
