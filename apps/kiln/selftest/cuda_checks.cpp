// SPDX-License-Identifier: Apache-2.0
// The checks of `kiln selftest` for what only CUDA has: contexts, graphs, shared memory, memory tiers.
#include <kiln/runtime/memory.hpp>

#include "apps/kiln/selftest/selftest_check.hpp"
#include "backends/cuda/cuda_api.hpp"
#include "base/format.hpp"
#include "base/process/dynamic_library.hpp"

namespace kiln::cli::selftest {
namespace {

using cuda::DriverResult;
using Graph = struct CUgraph_st*;
using GraphExec = struct CUgraphExec_st*;

/// Functions of the driver that a program calls and kiln does not.
struct ProgramFunctions {
  DriverResult (*create_context)(cuda::Context* context, unsigned flags, int device) = nullptr;
  DriverResult (*destroy_context)(cuda::Context context) = nullptr;
  DriverResult (*begin_capture)(cuda::Stream stream, cuda::CaptureMode mode) = nullptr;
  DriverResult (*end_capture)(cuda::Stream stream, Graph* graph) = nullptr;
  DriverResult (*instantiate)(GraphExec* exec, Graph graph, unsigned long long flags) = nullptr;
  DriverResult (*launch)(GraphExec exec, cuda::Stream stream) = nullptr;
  DriverResult (*destroy_exec)(GraphExec exec) = nullptr;
  DriverResult (*destroy_graph)(Graph graph) = nullptr;

  static ProgramFunctions open(const Subject& subject) {
    const DynamicLibrary library =
        DynamicLibrary::open(subject.driver.empty() ? "libcuda.so.1" : subject.driver).value();
    ProgramFunctions made;
    const bool complete =
        library.bind(made.create_context, "cuCtxCreate_v2") && library.bind(made.destroy_context, "cuCtxDestroy_v2") &&
        library.bind(made.begin_capture, "cuStreamBeginCapture_v2") &&
        library.bind(made.end_capture, "cuStreamEndCapture") &&
        library.bind(made.instantiate, "cuGraphInstantiateWithFlags") && library.bind(made.launch, "cuGraphLaunch") &&
        library.bind(made.destroy_exec, "cuGraphExecDestroy") && library.bind(made.destroy_graph, "cuGraphDestroy");
    if (!complete) fail("the driver lacks a function of contexts or graphs");
    return made;
  }
};

void expect_success(const CudaApi& api, const char* what, DriverResult result) { api.check(what, result).value(); }

}  // namespace

Result<Shown> check_shared_memory(const Subject& subject) {
  constexpr std::size_t kBytes = 64 << 10;  // every architecture that kiln supports has it
  Bench bench = Bench::open(subject);
  const Unit unit = Unit::cuda("shared.cu",
                               "extern \"C\" __global__ void reverse(float* x) {\n"
                               "  extern __shared__ float tile[];\n"
                               "  for (int i = threadIdx.x; i < 16384; i += blockDim.x) tile[16383 - i] = x[i];\n"
                               "  __syncthreads();\n"
                               "  for (int i = threadIdx.x; i < 16384; i += blockDim.x) x[i] = tile[i];\n"
                               "}\n")
                        .with_entry("reverse");
  const Kernel kernel = bench.session.get(unit).value();
  std::vector<float> values(kBytes / sizeof(float));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const std::vector<float> expected(values.rbegin(), values.rend());
  const Buffer memory = bench.stream.copy_of(values).value();
  kernel.launch({Grid(1), Block(256), bench.stream, kBytes}, memory).value();
  bench.stream.download(values.data(), memory, memory.size()).value();
  expect_equal(subject, values, expected, "reverse");
  return Shown{format_bytes(kBytes) + " of dynamic shared memory"};
}

Result<Shown> check_contexts(const Subject& subject) {
  const ProgramFunctions program = ProgramFunctions::open(subject);
  const std::shared_ptr<const CudaApi> api = CudaApi::open(subject.driver).value();
  Session session = Session::open(subject.options()).value();
  cuda::Context own = nullptr;
  expect_success(*api, "cuCtxCreate", program.create_context(&own, 0, 0));
  {
    const Stream stream = session.stream(Backend::Cuda).value();
    check_saxpy(subject, session.get(sample_unit(Backend::Cuda), "saxpy").value(), stream, 1000);
    cuda::Context current = nullptr;
    expect_success(*api, "cuCtxGetCurrent", (*api)->CtxGetCurrent(&current));
    if (current != own) fail("kiln replaced the context of the program");
  }
  expect_success(*api, "cuCtxDestroy", program.destroy_context(own));
  expect_success(*api, "cuCtxSetCurrent", (*api)->CtxSetCurrent(nullptr));
  const std::size_t devices = session.devices(Backend::Cuda).value().size();
  for (std::size_t device = 0; device < devices; ++device) {
    session.make_current(Backend::Cuda, device).value();
    const Stream stream = session.stream(Backend::Cuda).value();
    check_saxpy(subject, session.get(sample_unit(Backend::Cuda), "saxpy").value(), stream, 1000);
  }
  return Shown{"a context of the program, and the primary contexts of " + format_count(devices, "device", "devices")};
}

Result<Shown> check_graphs(const Subject& subject) {
  constexpr int kRuns = 3;
  const ProgramFunctions program = ProgramFunctions::open(subject);
  const std::shared_ptr<const CudaApi> api = CudaApi::open(subject.driver).value();
  Bench bench = Bench::open(subject);
  const KernelHandle handle = bench.session.handle(sample_unit(Backend::Cuda), scale_entry(Backend::Cuda));
  (void)handle.get_for_stream(bench.stream).value();
  const std::vector<float> ones(1000, 1.0F);
  const Buffer memory = bench.stream.copy_of(ones).value();
  const cuda::Stream native = cuda::to_stream(bench.stream.native());

  expect_success(*api, "cuStreamBeginCapture", program.begin_capture(native, cuda::CaptureMode::Global));
  const Result<Kernel> kernel = handle.get_for_stream(bench.stream);
  const auto other =
      bench.session.handle(sample_unit(Backend::Cuda).with_option("-DOTHER"), "saxpy").get_for_stream(bench.stream);
  Status launched = kernel ? Status() : Status(kernel.error());
  for (int i = 0; i < 2 && launched; ++i) {
    launched = kernel->launch({Grid(16), Block(64), bench.stream}, 1000U, 2.0F, memory);
  }
  Graph graph = nullptr;
  expect_success(*api, "cuStreamEndCapture", program.end_capture(native, &graph));
  launched.value();
  if (other || other.error().code != Code::Capturing) fail("a kernel that is not ready did not give Code::Capturing");

  GraphExec exec = nullptr;
  expect_success(*api, "cuGraphInstantiate", program.instantiate(&exec, graph, 0));
  for (int i = 0; i < kRuns; ++i) expect_success(*api, "cuGraphLaunch", program.launch(exec, native));
  std::vector<float> found(ones.size());
  bench.stream.download(found.data(), memory, memory.size()).value();
  expect_success(*api, "cuGraphExecDestroy", program.destroy_exec(exec));
  expect_success(*api, "cuGraphDestroy", program.destroy_graph(graph));
  expect_equal(subject, found, std::vector<float>(ones.size(), static_cast<float>(1 << (2 * kRuns))), "graph");
  return Shown{"a graph of two launches ran " + std::to_string(kRuns) + " times"};
}

Result<Shown> check_memory_tiers(const Subject& subject) {
  using runtime::MemoryTier;
  std::string shown;
  for (const MemoryTier tier : {MemoryTier::Pool, MemoryTier::RetryingPool, MemoryTier::Managed, MemoryTier::Plain}) {
    runtime::MemoryOptions options;
    options.tier = tier;
    options.limit = 0;
    options.driver = subject.driver;
    const runtime::Memory memory(std::move(options));
    Session session = runtime::open_session(subject.options(), memory).value();
    const Stream stream = session.stream(Backend::Cuda).value();
    std::vector<float> values(sample_size(subject));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 4093);
    std::vector<float> found(values.size());
    const Buffer buffer = stream.copy_of(values).value();
    stream.download(found.data(), buffer, buffer.size()).value();
    if (found != values) fail(std::string("wrong bytes after a copy in memory tier ") + to_string(tier));
    if (memory.usage().bytes != buffer.size()) fail(std::string("wrong byte count of memory tier ") + to_string(tier));
    const std::string used = runtime::memory_tier_name(memory);
    shown += (shown.empty() ? "" : ", ") + std::string(to_string(tier));
    if (used != to_string(tier)) shown += " (fell back to " + used + ")";
  }
  return Shown{std::move(shown)};
}

}  // namespace kiln::cli::selftest
