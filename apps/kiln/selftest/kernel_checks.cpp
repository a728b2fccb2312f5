// SPDX-License-Identifier: Apache-2.0
// The checks of `kiln selftest` for every backend.
#include <algorithm>
#include <memory>
#include <thread>

#include "analysis/audit/audit.hpp"
#include "apps/kiln/output/console.hpp"
#include "apps/kiln/selftest/selftest_check.hpp"
#include "backends/cuda/cuda_device.hpp"
#include "backends/opencl/opencl_device.hpp"
#include "base/format.hpp"

namespace kiln::cli::selftest {
namespace {

std::unique_ptr<Device> open_device(const Subject& subject) {
  if (subject.backend == Backend::Cuda) return std::make_unique<CudaDevice>(CudaDevice::Options{subject.driver, {}});
  return std::make_unique<OpenClDevice>(OpenClDevice::Options{});
}

void expect_rejected(Device& device, Artifact artifact, Bytes bytes, const std::string& what) {
  artifact.bytes = std::move(bytes);
  const auto loaded = device.load(artifact);
  if (loaded) fail("the driver loaded " + what);
  if (loaded.error().code != Code::LoadRejected) {
    fail("the driver's error for " + what + " is not known as a rejection: " + loaded.error().message);
  }
}

// Returns a target whose code the device cannot run: another major version.
Target foreign_target(const Target& target) {
  return target.architecture.starts_with("sm_9") ? Target::sm(80) : Target::sm(90);
}

}  // namespace

Result<Shown> check_compile(const Subject& subject) {
  Bench bench = Bench::open(subject);
  const ResolvedArtifact made = bench.session.resolve(sample_unit(subject.backend), bench.device.target).value();
  if (made.origin != Origin::Compiled) fail("the unit was found in a cache that should be empty");
  if (!made.uncacheable_reason.empty()) fail("the result is not cached: " + made.uncacheable_reason);
  return Shown{made.artifact.metadata.compiler + ", " + bench.device.target.name() + ", " +
               format_bytes(made.artifact.bytes.size()) + " in " + time_text(made.ms)};
}

Result<Shown> check_load(const Subject& subject) {
  Bench bench = Bench::open(subject);
  const Kernel kernel = bench.session.get(sample_unit(subject.backend), "saxpy").value();
  if (kernel.native() == nullptr || kernel.function().value() == nullptr) fail("the kernel has no native handle");
  const std::vector<std::size_t> sizes = kernel.parameter_sizes().value();
  if (subject.backend == Backend::Cuda && sizes != std::vector<std::size_t>{4, 4, 8, 8}) {
    fail("the driver reports " + std::to_string(sizes.size()) + " parameters, or other sizes, for saxpy");
  }
  const Occupancy occupancy = kernel.occupancy().value();
  return Shown{"suggested block " + std::to_string(occupancy.block_size) + ", at least " +
               std::to_string(occupancy.min_grid_size) + " blocks"};
}

Result<Shown> check_launch(const Subject& subject) {
  Bench bench = Bench::open(subject);
  const Kernel kernel = bench.session.get(sample_unit(subject.backend), "saxpy").value();
  const std::size_t count = sample_size(subject);
  std::vector<float> expected;
  const std::vector<float> found = run_saxpy(kernel, bench.stream, count, &expected);
  const bool untouched = std::all_of(found.begin(), found.end(),
                                     [&](const float& y) { return y == static_cast<float>((&y - found.data()) % 7); });
  // Only a driver that the user put in place of the system's can be one that runs nothing.
  if (untouched && !subject.driver.empty()) {
    return Shown{"not executed: the driver of the setting 'driver' accepts launches and runs nothing", false, false};
  }
  expect_equal(subject, found, expected, "saxpy");
  return Shown{std::to_string(count) + " results are right"};
}

Result<Shown> check_cache(const Subject& subject) {
  Bench first = Bench::open(subject);
  (void)first.session.artifact(sample_unit(subject.backend), first.device.target).value();
  Session second = Session::open(subject.options()).value();
  const ResolvedArtifact found = second.resolve(sample_unit(subject.backend), first.device.target).value();
  if (found.origin != Origin::Disk) fail(std::string("the unit came from: ") + to_string(found.origin));
  return Shown{"found on disk in " + time_text(found.ms)};
}

Result<Shown> check_streams(const Subject& subject) {
  constexpr int kLaunches = 20;
  Bench bench = Bench::open(subject);
  const Kernel scale = bench.session.get(sample_unit(subject.backend), scale_entry(subject.backend)).value();
  const Stream streams[] = {bench.stream, bench.session.stream(subject.backend).value()};
  const std::vector<float> ones(sample_size(subject), 1.0F);
  std::vector<Buffer> memory;
  for (const Stream& stream : streams) memory.push_back(stream.copy_of(ones).value());
  const auto items = static_cast<unsigned>(ones.size());
  for (int i = 0; i < kLaunches; ++i) {
    for (std::size_t s = 0; s < std::size(streams); ++s) {
      scale.launch({Grid((items - 1) / 64 + 1), Block(64), streams[s]}, items, 2.0F, memory[s]).value();
    }
  }
  for (std::size_t s = 0; s < std::size(streams); ++s) {
    std::vector<float> found(ones.size());
    streams[s].download(found.data(), memory[s], memory[s].size()).value();
    expect_equal(subject, found, std::vector<float>(ones.size(), static_cast<float>(1 << kLaunches)), "stream");
  }
  return Shown{std::to_string(kLaunches) + " dependent launches on each of two streams"};
}

// Runs functions on threads of their own and fails if one of them fails.
template <class Function>
void run_on_threads(std::size_t count, const Function& function) {
  std::vector<Status> ended(count);
  std::vector<std::thread> threads;
  for (Status& status : ended) {
    threads.emplace_back([&status, &function] {
      try {
        function();
      } catch (const ResultError& thrown) {
        status = thrown.error();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : ended) status.value();
}

Result<Shown> check_threads(const Subject& subject) {
  Bench bench = Bench::open(subject);
  const Unit unit = sample_unit(subject.backend);
  if (subject.backend == Backend::Cuda) {
    run_on_threads(1, [&] {
      const auto without = bench.session.get(unit, "saxpy");
      if (without) fail("a thread without a context got a kernel");
      if (without.error().code != Code::Unavailable) fail("no context: " + without.error().message);
    });
  }
  run_on_threads(4, [&] {
    const Stream stream = bench.session.stream(subject.backend).value();
    const Kernel kernel = bench.session.get(unit, "saxpy").value();
    for (int i = 0; i < 5; ++i) check_saxpy(subject, kernel, stream, 5000);
  });
  return Shown{"five launches in each of four threads"};
}

Result<Shown> check_rejections(const Subject& subject) {
  Bench bench = Bench::open(subject);
  const Artifact artifact = bench.session.artifact(sample_unit(subject.backend), bench.device.target).value();
  const std::unique_ptr<Device> device = open_device(subject);
  (void)device->devices().value();
  expect_rejected(*device, artifact, Bytes::of("these bytes are not a program"), "bytes that are not a program");
  expect_rejected(*device, artifact, Bytes::of(std::string(artifact.bytes.view().substr(0, artifact.bytes.size() / 2))),
                  "half of a program");
  std::string shown = "invalid code";
  if (subject.backend == Backend::Cuda) {
    if (auto other = bench.session.artifact(sample_unit(subject.backend), foreign_target(bench.device.target))) {
      expect_rejected(*device, artifact, other->bytes, "code for " + other->target.name());
      shown += ", code for " + other->target.name();
    }
  }
  const Kernel kernel = bench.session.get(sample_unit(subject.backend), "saxpy").value();
  if (kernel.launch({Grid(1), Block(1), bench.stream}, 1U, 1.0F)) fail("a launch with two of four arguments succeeded");
  if (subject.backend == Backend::Cuda) {
    const Buffer memory = bench.stream.allocate(1024).value();
    const Status huge = kernel.launch({Grid(1), Block(1 << 16), bench.stream}, 1U, 1.0F, memory, memory);
    if (huge || huge.error().code != Code::InvalidArgument)
      fail("a block of 65,536 threads is not an invalid argument");
    shown += ", a block that is too large";
  }
  check_saxpy(subject, kernel, bench.stream, 1000);
  return Shown{"rejected: " + shown + ", missing arguments; a launch afterwards works"};
}

Result<Shown> check_audit(const Subject& subject) {
  const std::string trace = subject.directory + "/trace.json";
  {
    SessionOptions options = subject.options();
    options.settings["trace"] = trace;
    Bench bench = Bench::open(subject, std::move(options));
    const Kernel kernel = bench.session.get(sample_unit(subject.backend), "saxpy").value();
    const std::size_t count = sample_size(subject);
    const OperationScope run(OperationContext::new_run("selftest.saxpy", count, Residency::Device));
    check_saxpy(subject, kernel, bench.stream, count);
    bench.session.write_trace().value();
  }
  const audit::Trace read = audit::read_trace(trace).value();
  const audit::Report report = audit::run_audit(read);
  const std::uint64_t launches = report.launches_on_gpu + report.launches_on_cpu_device;
  if (launches == 0) fail("the trace has no launch");
  if (!report.clean()) {
    fail("the audit is not clean: " + (report.findings.empty() ? "evidence is missing" : report.findings.front().text));
  }
  return Shown{std::to_string(read.events.size()) + " events; " +
               (report.launches_on_gpu != 0 ? "launched on a GPU" : "launched on a CPU device")};
}

}  // namespace kiln::cli::selftest
