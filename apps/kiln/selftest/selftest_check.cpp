// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/selftest/selftest_check.hpp"

#include <algorithm>

#include "session/config/settings.hpp"

namespace kiln::cli::selftest {
namespace {

constexpr const char* kCudaSource = R"(
extern "C" __global__ void saxpy(unsigned n, float a, const float* x, float* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
template <class T> __global__ void scale(unsigned n, T a, T* x) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= a;
}
)";
constexpr const char* kOpenClSource = R"(
kernel void saxpy(uint n, float a, global const float* x, global float* y) {
  const size_t i = get_global_id(0);
  if (i < n) y[i] += a * x[i];
}
kernel void scale(uint n, float a, global float* x) {
  const size_t i = get_global_id(0);
  if (i < n) x[i] *= a;
}
)";

constexpr Check kCudaChecks[] = {
    {"compile", "NVRTC compiles a unit for the device", &check_compile},
    {"load", "the driver loads it and describes its kernels", &check_load},
    {"launch", "a kernel computes the right result", &check_launch},
    {"cache", "a second session finds the unit on disk and compiles nothing", &check_cache},
    {"streams", "dependent launches on two streams", &check_streams},
    {"threads", "four threads launch; a thread without a context gets an error that names the next step",
     &check_threads},
    {"rejections", "invalid code and invalid launches are errors, and the device stays usable", &check_rejections},
    {"shared_memory", "a launch with more than 48 KiB of dynamic shared memory", &check_shared_memory},
    {"contexts", "kiln uses the program's own context and does not replace it", &check_contexts},
    {"graphs", "a captured graph runs; what cannot be captured is an error and leaves the capture intact",
     &check_graphs},
    {"memory_tiers", "each memory tier allocates and copies", &check_memory_tiers},
    {"cccl", "CCCL algorithms compute the results of the standard library", &check_cccl_calls},
    {"audit", "the audit of a traced run is clean", &check_audit},
};
constexpr Check kOpenClChecks[] = {
    {"compile", "the device's compiler compiles a unit", &check_compile},
    {"load", "the driver loads it and describes its kernels", &check_load},
    {"launch", "a kernel computes the right result", &check_launch},
    {"cache", "a second session finds the unit on disk and compiles nothing", &check_cache},
    {"streams", "dependent launches on two streams", &check_streams},
    {"threads", "four threads launch", &check_threads},
    {"rejections", "invalid code and invalid launches are errors, and the device stays usable", &check_rejections},
    {"audit", "the audit of a traced run is clean", &check_audit},
};

}  // namespace

SessionOptions Subject::options() const {
  SessionOptions made;
  // Locked settings do not depend on the configuration of the user: no bundle, no remote store, no other cache.
  for (const SettingSpec& setting : all_settings()) made.locked.insert(setting.name);
  made.settings = {{"cache.dir", directory + "/cache"}, {"status.dir", "off"}};
  const auto set = [&made](const char* name, const std::string& value) {
    if (!value.empty()) made.settings[name] = value;
  };
  set("nvrtc", nvrtc);
  set("cccl", cccl);
  set("driver", driver);
  set("worker.path", worker);
  made.on_event = [](const Event&) {};  // otherwise the session prints a warning for each ignored setting of the user
  return made;
}

std::span<const Check> checks_of(Backend backend) {
  if (backend == Backend::Cuda) return kCudaChecks;
  return kOpenClChecks;
}

Result<Shown> run_check(const Check& check, const Subject& subject) {
  try {
    return check.run(subject);
  } catch (const ResultError& thrown) {
    return thrown.error();
  }
}

Bench Bench::open(const Subject& subject, SessionOptions options) {
  Session session = Session::open(std::move(options)).value();
  std::vector<DeviceInfo> devices = session.devices(subject.backend).value();
  Stream stream = session.stream(subject.backend).value();
  return {std::move(session), std::move(stream), std::move(devices.front())};
}

std::string scale_entry(Backend backend) { return backend == Backend::Cuda ? "scale<float>" : "scale"; }

Unit sample_unit(Backend backend) {
  const Unit unit =
      backend == Backend::Cuda ? Unit::cuda("selftest.cu", kCudaSource) : Unit::opencl("selftest.cl", kOpenClSource);
  return unit.with_entry("saxpy").with_entry(scale_entry(backend));
}

void fail(std::string message) { throw ResultError({Code::Internal, std::move(message), {}}); }

std::vector<float> run_saxpy(const KernelRef& kernel, const Stream& stream, std::size_t count,
                             std::vector<float>* expected) {
  std::vector<float> x(count);
  std::vector<float> y(count);
  for (std::size_t i = 0; i < count; ++i) {  // small whole numbers, so that results are exact
    x[i] = static_cast<float>(i % 1000);
    y[i] = static_cast<float>(i % 7);
  }
  const Buffer device_x = stream.copy_of(x).value();
  const Buffer device_y = stream.copy_of(y).value();
  const unsigned block = std::max(kernel.occupancy().value().block_size, 1U);
  const auto items = static_cast<unsigned>(count);
  kernel.launch({Grid((items - 1) / block + 1), Block(block), stream}, items, 3.0F, device_x, device_y).value();
  if (expected != nullptr) {
    *expected = y;
    for (std::size_t i = 0; i < count; ++i) (*expected)[i] += 3.0F * x[i];
  }
  const OperationScope result(OperationContext::with_purpose(Purpose::Materialize));
  stream.download(y.data(), device_y, device_y.size()).value();
  return y;
}

void check_saxpy(const Subject& subject, const KernelRef& kernel, const Stream& stream, std::size_t count) {
  std::vector<float> expected;
  const std::vector<float> found = run_saxpy(kernel, stream, count, &expected);
  expect_equal(subject, found, expected, "saxpy");
}

}  // namespace kiln::cli::selftest
