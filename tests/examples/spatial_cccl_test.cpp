// The primitives of examples/spatial on CUDA by NVIDIA's own CCCL library, as far as that goes without a GPU: it
// compiles and loads them for the driver double, and runs on no driver but NVIDIA's.
#include <gtest/gtest.h>

#include <chrono>

#include "examples/spatial_cuda.hpp"
#include "support/cccl_packages.hpp"

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

TEST_F(SpatialCccl, EverythingThatAJoinNeedsIsCompiledAndLoaded) {
  for (const Cold& cold : Plan("join").stage(spatial::cuda::sjoin_needs).ensure_warm(*session_, seconds(170))) {
    ADD_FAILURE() << cold.unit << ": " << cold.why;
  }
  for (const cccl::Spec& spec : {spatial::cuda::saturating_scan(), spatial::cuda::selection(), spatial::cuda::sort()}) {
    EXPECT_TRUE(cccl::get(*session_, spec).ok()) << spec.name;
  }
}

TEST_F(SpatialCccl, OnADriverThatIsNotNvidiasAJoinIsAnErrorThatNamesTheAlgorithm) {
  spatial::PointColumn points;
  points.add({0.25, 0.25});
  spatial::PolygonColumn polygons;
  polygons.add_ring({{0, 0}, {1, 0}, {0, 1}, {0, 0}});
  polygons.end_row();
  const auto pairs = spatial::sjoin(*runtime_, points, polygons);
  ASSERT_FALSE(pairs.ok());
  EXPECT_NE(pairs.error().message.find("scan"), std::string::npos) << pairs.error().message;
  for (const UndeclaredUse& use : session_->undeclared()) ADD_FAILURE() << use.unit << " by " << use.caller;
}

}  // namespace
}  // namespace kiln::test
