// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <kiln/cccl.hpp>
#include <kiln/kiln.hpp>
#include <kiln/runtime.hpp>

#include "examples/spatial_host_kernels.hpp"
#include "spatial/device/cuda_primitives.hpp"
#include "spatial/device/cuda_units.hpp"
#include "spatial/device/device_column.hpp"
#include "spatial/operations.hpp"
#include "support/fakes/cuda_driver/control.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/toolkit.hpp"

namespace kiln::test {

/// Returns one cache for all tests of a program.
inline std::string spatial_cuda_cache() {
  static const TemporaryDirectory directory;
  return directory.path("cache");
}

inline const Unit& spatial_stand_ins() {
  static const Unit unit = Unit::cuda("stand_ins.cu", kStandIns)
                               .with_entry("stand_in_scan")
                               .with_entry("stand_in_select")
                               .with_entry("stand_in_sort")
                               .with_entry("stand_in_unique")
                               .with_entry("stand_in_reduce");
  return unit;
}
inline constinit const Requirements kSpatialStandIns{"stand-ins", [] { return Units{spatial_stand_ins()}; }};

/// The CUDA variants of examples/spatial on the fake driver: NVRTC really compiles the units, the fake driver checks
/// them, and in place of each kernel it runs the same file built by the host compiler. This tests the pipeline but not
/// a GPU.
class SpatialCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    for (const SpatialHostKernel& kernel : spatial_host_kernels()) driver_.on_launch(kernel.name, kernel.run);
    session_ = Session::open(options()).value();
    ASSERT_TRUE(session_->make_current(kiln::Backend::Cuda).has_value());
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

  /// Without CCCL's library by default.
  virtual SessionOptions options() {
    SessionOptions made;
    made.settings = {{"cache.dir", spatial_cuda_cache()},
                     {"driver", FakeCudaDriver::path()},
                     {"nvrtc", toolkit_nvrtc()},
                     {"cccl", directory_.path("none")},
                     {"trace", directory_.path("trace.json")}};
    for (const auto& [name, value] : made.settings) made.locked.insert(name);
    made.record_undeclared = true;
    made.on_event = [this](const Event& event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
    };
    return made;
  }
  /// Opens a kit with replacements for CCCL's algorithms, which are enqueued on the stream of the call.
  std::shared_ptr<spatial::DeviceContext> open_kit() {
    const auto primitives = [this](spatial::DeviceContext& kit) {
      return std::make_unique<spatial::CudaPrimitives>(kit, [this](const cccl::Spec& spec) { return stand_in(spec); });
    };
    return spatial::DeviceContext::open(*session_, runtime::Backend::Cuda, primitives).value();
  }
  Result<spatial::CudaPrimitives::Algorithm> stand_in(const cccl::Spec& spec);
  /// Returns the events since the last call.
  std::vector<Event> take_events() {
    const std::lock_guard lock(mutex_);
    return std::exchange(events_, {});
  }

  TemporaryDirectory directory_;
  FakeCudaDriver driver_{"sm_80"};
  std::mutex mutex_;
  std::vector<Event> events_;       // guarded by mutex_
  std::vector<std::string> asked_;  // canonical texts of the requested algorithms
  std::optional<Session> session_;
  std::optional<runtime::Runtime> runtime_;
  std::shared_ptr<spatial::DeviceContext> kit_;
};

/// Returns the number of the operator for stand_in_reduce.
inline int reduction_of(const cccl::Spec& spec) {
  const auto kind = spec.operators.empty() ? cccl::OperatorKind::Plus : spec.operators.front().kind;
  return kind == cccl::OperatorKind::Minimum ? 1 : kind == cccl::OperatorKind::Maximum ? 2 : 0;
}

inline Result<spatial::CudaPrimitives::Algorithm> SpatialCuda::stand_in(const cccl::Spec& spec) {
  using cccl::Algorithm;
  const char* const entry = spec.algorithm == Algorithm::Scan                ? "stand_in_scan"
                            : spec.algorithm == Algorithm::ThreeWayPartition ? "stand_in_select"
                            : spec.algorithm == Algorithm::UniqueByKey       ? "stand_in_unique"
                            : spec.algorithm == Algorithm::SegmentedReduce   ? "stand_in_reduce"
                                                                             : "stand_in_sort";
  asked_.push_back(spec.text());
  auto kernel = session_->get(spatial_stand_ins(), entry);
  if (!kernel) return std::move(kernel).error();
  return spatial::CudaPrimitives::Algorithm(
      [kernel = *kernel, algorithm = spec.algorithm, op = reduction_of(spec)](const cccl::Call& call) -> Status {
        const unsigned block = kernel.occupancy().value().block_size;
        const auto grid = static_cast<unsigned>((call.items - 1) / block + 1);
        const LaunchConfig config(Grid(grid), Block(block), *call.stream);
        const auto& at = call.iterators;
        if (algorithm == Algorithm::Scan) return kernel.launch(config, at.at(0), at.at(1), call.items);
        if (algorithm == Algorithm::ThreeWayPartition) {
          return kernel.launch(config, at.at(0), at.at(1), at.at(3), at.at(4), call.items);
        }
        if (algorithm == Algorithm::UniqueByKey) {
          return kernel.launch(config, at.at(0), at.at(1), at.at(2), at.at(3), at.at(4), call.items);
        }
        if (algorithm == Algorithm::SegmentedReduce) {
          return kernel.launch(config, at.at(0), at.at(1), at.at(2), at.at(3), call.secondary_items, op,
                               *static_cast<const double*>(call.init));
        }
        return kernel.launch(config, at.at(0), at.at(1), at.at(2), at.at(3), call.items, call.end_bit);
      });
}

}  // namespace kiln::test
