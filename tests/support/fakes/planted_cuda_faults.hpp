// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kiln/cuda.hpp>
#include <kiln/runtime.hpp>
#include <kiln/stream.hpp>

#include "support/fakes/cuda_driver/control.hpp"
#include "support/fixtures/exact_variant.hpp"
#include "support/fixtures/toolkit.hpp"

namespace kiln::test {

/// What makes a CUDA run behave like CPU code and OpenCL or PoCL cannot have: memory tiers, the default stream, pinned
/// memory, shared memory and a slow fp64.
enum class CudaFault : unsigned char {
  TrimInLoop,
  PlainMemory,
  WaitForDefaultStream,
  PageableCopies,
  PinnedCopies,  ///< no fault: what PageableCopies should do
  DefaultStreamHelpers,
  SmallBlockWithSharedMemory,
  LargeBlockWithSharedMemory,  ///< no fault: what SmallBlockWithSharedMemory should do
  NeedlessFp64,
};
using CudaFaults = std::set<CudaFault>;

inline Unit touch_unit() {
  return Unit::cuda("touch.cu",
                    "extern \"C\" __global__ void touch(float* x, int n) { if (n > 0) x[0] += 0; }\n"
                    "extern \"C\" __global__ void tile(float* x, int n) {\n"
                    "  __shared__ float rows[12 << 10]; rows[threadIdx.x] = *x; __syncthreads(); *x = rows[n]; }")
      .with_entry("touch")
      .with_entry("tile");
}

/// A run on the fake driver, which runs no kernel.
class TouchRun {
 public:
  TouchRun(Session& session, const runtime::Memory& memory, FakeCudaDriver& driver, const CudaFaults& faults)
      : session_(session), memory_(memory), driver_(driver), faults_(faults) {}

  /// Three launches with memory of a tier, and the requested faults.
  int run() {
    const Buffer rows = stream_.allocate(1 << 20).value();
    const LaunchConfig config(Grid(100), Block(touch_.occupancy().value().block_size), stream_);
    for (int turn = 0; turn < 3; ++turn) {
      touch_.launch(config, rows, 1).value();
      if (planted(CudaFault::TrimInLoop)) memory_.trim().value();
      if (planted(CudaFault::WaitForDefaultStream)) wait_for_default_stream();
    }
    if (planted(CudaFault::PageableCopies)) copies_between_streams(false);
    if (planted(CudaFault::PinnedCopies)) copies_between_streams(true);
    if (planted(CudaFault::DefaultStreamHelpers)) helpers_on_default_stream(rows);
    if (planted(CudaFault::SmallBlockWithSharedMemory)) launch_tiles(rows, 64);
    if (planted(CudaFault::LargeBlockWithSharedMemory)) launch_tiles(rows, tile_.occupancy().value().block_size);
    return 1;
  }

 private:
  bool planted(CudaFault fault) const { return faults_.count(fault) != 0; }

  // A call of the wrapper itself, which kiln knows only from the program's event.
  void wait_for_default_stream() {
    if (driver_.driver().StreamSynchronize(nullptr) != cuda::DriverResult::Success) std::abort();
    Event event;
    event.kind = Event::Kind::Synchronized;
    session_.event_callback()(event);
  }
  // Double buffering: rows are uploaded on one stream while the other one computes.
  void copies_between_streams(bool pinned) {
    const Stream streams[] = {stream_, session_.stream(kiln::Backend::Cuda).value()};
    std::vector<float> chunk(64 << 10);
    const std::size_t bytes = chunk.size() * sizeof(float);
    const Buffer buffers[] = {streams[0].allocate(bytes).value(), streams[1].allocate(bytes).value()};
    if (pinned) driver_.application().MemHostRegister(chunk.data(), bytes, 0);
    for (int turn = 0; turn < 4; ++turn) {
      const int now = turn % 2;
      touch_.launch({Grid(100), Block(1024), streams[now]}, buffers[now], 1).value();
      streams[1 - now].upload(buffers[1 - now], chunk.data(), bytes).value();
    }
    if (pinned) driver_.application().MemHostUnregister(chunk.data());
  }
  void helpers_on_default_stream(const Buffer& rows) {
    const Stream other = session_.stream(kiln::Backend::Cuda).value();
    for (int turn = 0; turn < 4; ++turn) {
      touch_.launch({Grid(100), Block(1024), turn % 2 == 0 ? stream_ : other}, rows, 1).value();
      touch_.launch({Grid(100), Block(1024), cuda::default_stream}, rows, 1).value();
    }
  }
  void launch_tiles(const Buffer& rows, unsigned block) {
    for (int turn = 0; turn < 2; ++turn) tile_.launch({Grid(1000), Block(block), stream_}, rows, 1).value();
  }

  Session& session_;
  const runtime::Memory& memory_;
  FakeCudaDriver& driver_;
  const CudaFaults& faults_;
  const Stream stream_ = session_.stream(kiln::Backend::Cuda).value();
  const Kernel touch_ = session_.get(touch_unit(), "touch", std::chrono::seconds(60)).value();
  const Kernel tile_ = session_.get(touch_unit(), "tile", std::chrono::seconds(60)).value();
};

inline Result<int> touch_on_cuda(runtime::Dispatch& dispatch, const runtime::Memory& memory, FakeCudaDriver& driver,
                                 const CudaFaults& faults) {
  return TouchRun(dispatch.runtime().session(), memory, driver, faults).run();
}

inline Result<int> touch_on_cpu(runtime::Dispatch& /*dispatch*/, const runtime::Memory& /*memory*/,
                                FakeCudaDriver& /*driver*/, const CudaFaults& /*faults*/) {
  return 0;
}

using Touch = Result<int>(runtime::Dispatch&, const runtime::Memory&, FakeCudaDriver&, const CudaFaults&);
using TouchWay = runtime::Implementation<Touch>;
inline constexpr auto kTouch = runtime::operation<Touch>(
    "test.touch", runtime::PrecisionClass::Coarse, TouchWay{exact_variant(runtime::Backend::Cpu), &touch_on_cpu},
    TouchWay{exact_variant(runtime::Backend::Cuda), &touch_on_cuda});

/// Runs once on a new fake driver; `listener` receives the events of the run, and not those of the compile before it.
inline void run_on_double(const CudaFaults& faults, const std::string& cache, EventCallback listener) {
  const auto planted = [&](CudaFault fault) { return faults.count(fault) != 0; };
  FakeCudaDriver driver(planted(CudaFault::NeedlessFp64) ? "sm_89" : "sm_80");
  const runtime::Memory memory;
  SessionOptions options;
  options.settings = {{"cache.dir", cache}, {"driver", FakeCudaDriver::path()}, {"nvrtc", toolkit_nvrtc()}};
  options.locked = {"cache.dir", "driver", "nvrtc"};
  std::atomic<bool> listens{false};
  options.on_event = [&listens, listener = std::move(listener)](const Event& event) {
    if (listens) listener(event);
  };
  Session session = runtime::open_session(std::move(options), memory).value();
  session.make_current(kiln::Backend::Cuda).value();
  for (const char* kernel : {"touch", "tile"})
    (void)session.get(touch_unit(), kernel, std::chrono::seconds(60)).value();
  listens = true;
  if (planted(CudaFault::PlainMemory)) driver.fail("cuMemPoolCreate", 1, cuda::DriverResult::NotSupported);
  runtime::RuntimeOptions gpu;
  gpu.mode = runtime::Mode::Gpu;
  gpu.devices = {runtime::Backend::Cuda};
  runtime::Runtime runtime(session, gpu);
  (void)runtime::run(runtime, kTouch, {1000, Residency::Host, runtime::Backend::Cpu}, memory, driver, faults).value();
}

}  // namespace kiln::test
