#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <kiln/kiln.hpp>
#include <kiln/runtime.hpp>

#include "examples/spatial_host_kernels.hpp"
#include "spatial/device/cuda_primitives.hpp"
#include "spatial/device/cuda_units.hpp"
#include "spatial/device/device_column.hpp"
#include "spatial/operations.hpp"
#include "support/driver_double/control.hpp"
#include "support/temporary_directory.hpp"
#include "support/toolkit.hpp"

namespace kiln::test {

/// One for all tests of a program.
inline std::string spatial_cuda_cache() {
  static const TemporaryDirectory folder;
  return folder.path("cache");
}

inline const Unit& spatial_stand_ins() {
  static const Unit unit =
      Unit::cuda("stand_ins.cu", kStandIns).entry("stand_in_scan").entry("stand_in_select").entry("stand_in_sort");
  return unit;
}
inline constinit const Needs kSpatialStandIns{"stand-ins", [] { return Units{spatial_stand_ins()}; }};

/// The CUDA variants of examples/spatial on the driver double: NVRTC really compiles the units, the double takes and
/// checks them, and in the place of each kernel runs what the host's compiler made of the same file. It shows that the
/// pipeline is right, and nothing of a GPU.
class SpatialCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    for (const SpatialHostKernel& kernel : spatial_host_kernels()) driver_.on_launch(kernel.name, kernel.run);
    session_ = Session::open(options()).value();
    ASSERT_TRUE(session_->make_current("cuda").ok());
    session_->request(kSpatialStandIns);
    runtime::RuntimeOptions wanted;
    wanted.mode = runtime::Mode::Gpu;
    wanted.devices = {runtime::Backend::Cuda};
    runtime_.emplace(*session_, wanted);
    kit_ = open_kit();
  }
  void TearDown() override {
    kit_.reset();
    runtime_.reset();
    session_.reset();
    EXPECT_EQ(driver_.leaks(), 0U);
    EXPECT_EQ(driver_.stale_uses(), 0U);
  }

  /// Without CCCL's library, unless a test says which.
  virtual SessionOptions options() {
    SessionOptions made;
    made.settings = {{"cache.dir", spatial_cuda_cache()},
                     {"driver", DriverDouble::path()},
                     {"nvrtc", toolkit_nvrtc()},
                     {"cccl", folder_.path("none")},
                     {"trace", folder_.path("trace.json")}};
    for (const auto& [name, value] : made.settings) made.locked.insert(name);
    made.record_undeclared = true;
    made.on_event = [this](const Event& event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
    };
    return made;
  }
  /// With stand-ins for CCCL's algorithms, each of which is put on the stream as the call says.
  std::shared_ptr<spatial::DeviceKit> open_kit() {
    const auto primitives = [this](spatial::DeviceKit& kit) {
      return std::make_unique<spatial::CudaPrimitives>(kit, [this](const cccl::Spec& spec) { return stand_in(spec); });
    };
    return spatial::DeviceKit::open(*session_, runtime::Backend::Cuda, primitives).value();
  }
  Result<spatial::CudaPrimitives::Algorithm> stand_in(const cccl::Spec& spec);
  /// Since the last call.
  std::vector<Event> take_events() {
    const std::lock_guard lock(mutex_);
    return std::exchange(events_, {});
  }

  TemporaryDirectory folder_;
  DriverDouble driver_{"sm_80"};
  std::mutex mutex_;
  std::vector<Event> events_;       // under mutex_
  std::vector<std::string> asked_;  // the canonical texts of the algorithms that were asked for
  std::optional<Session> session_;
  std::optional<runtime::Runtime> runtime_;
  std::shared_ptr<spatial::DeviceKit> kit_;
};

inline Result<spatial::CudaPrimitives::Algorithm> SpatialCuda::stand_in(const cccl::Spec& spec) {
  using cccl::Algorithm;
  const char* const entry = spec.algorithm == Algorithm::Scan                ? "stand_in_scan"
                            : spec.algorithm == Algorithm::ThreeWayPartition ? "stand_in_select"
                                                                             : "stand_in_sort";
  asked_.push_back(spec.text());
  auto kernel = session_->get(spatial_stand_ins(), entry);
  if (!kernel) return std::move(kernel).error();
  return spatial::CudaPrimitives::Algorithm(
      [kernel = *kernel, algorithm = spec.algorithm](const cccl::Call& call) -> Status {
        Launch how;
        how.stream = call.stream;
        how.block.x = kernel.occupancy().value().block;
        how.grid.x = static_cast<unsigned>((call.items - 1) / how.block.x + 1);
        const auto& at = call.iterators;
        if (algorithm == Algorithm::Scan) return kernel.launch(how, at.at(0), at.at(1), call.items);
        if (algorithm == Algorithm::ThreeWayPartition) {
          return kernel.launch(how, at.at(0), at.at(1), at.at(3), at.at(4), call.items);
        }
        return kernel.launch(how, at.at(0), at.at(1), at.at(2), at.at(3), call.items, call.last_bit);
      });
}

}  // namespace kiln::test
