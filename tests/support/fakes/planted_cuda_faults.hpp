#pragma once

#include <chrono>
#include <set>
#include <string>
#include <utility>

#include <kiln/runtime.hpp>
#include <kiln/stream.hpp>

#include "support/fakes/cuda_driver/control.hpp"
#include "support/fixtures/exact_variant.hpp"
#include "support/fixtures/toolkit.hpp"

namespace kiln::test {

/// Faults that make a CUDA run behave like CPU code and that OpenCL cannot have: memory tiers and the default stream.
enum class CudaFault : unsigned char { TrimInLoop, PlainMemory, WaitForDefaultStream };
using CudaFaults = std::set<CudaFault>;

inline Unit touch_unit() {
  return Unit::cuda("touch.cu", "extern \"C\" __global__ void touch(float* x, int n) { if (n > 0) x[0] += 0; }")
      .with_entry("touch");
}

/// Three launches with memory of a tier. The kernels do not run: this is for the fake driver.
inline Result<int> touch_on_cuda(runtime::Dispatch& dispatch, const runtime::Memory& memory, FakeCudaDriver& driver,
                                 const CudaFaults& faults) {
  const auto planted = [&](CudaFault fault) { return faults.count(fault) != 0; };
  Session& session = dispatch.runtime().session();
  const Stream stream = session.stream(kiln::Backend::Cuda).value();
  const Kernel kernel = session.get(touch_unit(), "touch", std::chrono::seconds(60)).value();
  const Buffer rows = stream.allocate(1 << 20).value();
  const LaunchConfig config(Grid(100), Block(kernel.occupancy().value().block_size), stream);
  for (int turn = 0; turn < 3; ++turn) {
    kernel.launch(config, rows, 1).value();
    if (planted(CudaFault::TrimInLoop)) memory.trim().value();
    if (!planted(CudaFault::WaitForDefaultStream)) continue;
    // A call of the wrapper itself, which kiln knows only from the program's event.
    if (driver.driver().StreamSynchronize(nullptr) != cuda::DriverResult::Success) return 0;
    Event event;
    event.kind = Event::Kind::Synchronized;
    session.event_callback()(event);
  }
  return 1;
}

inline Result<int> touch_on_cpu(runtime::Dispatch& /*dispatch*/, const runtime::Memory& /*memory*/,
                                FakeCudaDriver& /*driver*/, const CudaFaults& /*faults*/) {
  return 0;
}

using Touch = Result<int>(runtime::Dispatch&, const runtime::Memory&, FakeCudaDriver&, const CudaFaults&);
inline constexpr auto kTouch =
    runtime::operation<Touch>("test.touch", runtime::PrecisionClass::Coarse,
                              runtime::Implementation<Touch>{exact_variant(runtime::Backend::Cpu), &touch_on_cpu},
                              runtime::Implementation<Touch>{exact_variant(runtime::Backend::Cuda), &touch_on_cuda});

/// Runs once on a new fake driver; `listener` receives the events.
inline void run_on_double(const CudaFaults& faults, const std::string& cache, EventCallback listener) {
  FakeCudaDriver driver("sm_80");
  const runtime::Memory memory;
  SessionOptions options;
  options.settings = {{"cache.dir", cache}, {"driver", FakeCudaDriver::path()}, {"nvrtc", toolkit_nvrtc()}};
  options.locked = {"cache.dir", "driver", "nvrtc"};
  options.on_event = std::move(listener);
  Session session = runtime::open_session(std::move(options), memory).value();
  session.make_current(kiln::Backend::Cuda).value();
  (void)session.get(touch_unit(), "touch", std::chrono::seconds(60)).value();
  if (faults.count(CudaFault::PlainMemory) != 0) {
    driver.fail("cuMemPoolCreate", 1, cuda::DriverResult::NotSupported);
  }
  runtime::RuntimeOptions gpu;
  gpu.mode = runtime::Mode::Gpu;
  gpu.devices = {runtime::Backend::Cuda};
  runtime::Runtime runtime(session, gpu);
  (void)runtime::run(runtime, kTouch, {1000, Residency::Host, runtime::Backend::Cpu}, memory, driver, faults).value();
}

}  // namespace kiln::test
