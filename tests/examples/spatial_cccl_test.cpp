// SPDX-License-Identifier: Apache-2.0
// The primitives of examples/spatial on CUDA with NVIDIA's CCCL library, without a GPU: the library compiles and loads
// them for the fake driver, but runs only on NVIDIA's driver.
#include <gtest/gtest.h>

#include <chrono>

#include "examples/spatial_cuda.hpp"
#include "support/fixtures/cccl_packages.hpp"

namespace kiln::test {
namespace {

using std::chrono::seconds;

class SpatialCccl : public SpatialCuda {
 protected:
  void SetUp() override {
    if (cccl_package().empty()) GTEST_SKIP() << "cuda-cccl is not installed (tools/setup.sh)";
    SpatialCuda::SetUp();
  }
  SessionOptions options() override {
    SessionOptions made = SpatialCuda::options();
    made.settings["cccl"] = cccl_package();
    return made;
  }
};

TEST_F(SpatialCccl, CompilesAndLoadsAllUnitsOfJoin) {
  for (const NotReady& cold :
       WarmupPlan("join").stage(spatial::cuda::sjoin_requirements).ensure_warm(*session_, seconds(170))) {
    ADD_FAILURE() << cold.unit << ": " << cold.reason;
  }
  for (const cccl::Spec& spec : {spatial::cuda::saturating_scan(), spatial::cuda::selection(), spatial::cuda::sort()}) {
    EXPECT_TRUE(cccl::get(*session_, spec).has_value()) << spec.name;
  }
}

TEST_F(SpatialCccl, JoinFailsOnOtherDriverAndNamesAlgorithm) {
  spatial::PointColumn points;
  points.add({0.25, 0.25});
  spatial::PolygonColumn polygons;
  polygons.add_ring({{0, 0}, {1, 0}, {0, 1}, {0, 0}});
  polygons.end_row();
  const auto pairs = spatial::sjoin(*runtime_, points, polygons);
  ASSERT_FALSE(pairs.has_value());
  EXPECT_NE(pairs.error().message.find("scan"), std::string::npos) << pairs.error().message;
  for (const UndeclaredUse& use : session_->undeclared()) ADD_FAILURE() << use.unit << " by " << use.caller;
}

}  // namespace
}  // namespace kiln::test
