#pragma once

#include <cstdint>

#include <kiln/runtime.hpp>

#include "spatial/cpu/variants.hpp"
#include "spatial/device/variants.hpp"
#include "spatial/operands.hpp"

namespace spatial {

/// The processor's variant and those of the devices, each of which is the same code with other kernels.
template <class Function>
constexpr runtime::Implementation<Function> on_processor(Function* run) {
  return {{runtime::Backend::Cpu}, run};
}
/// From so many rows on, as long as nobody has measured it on the machine (docs/calibration.md): what a GPU needs to
/// make up for bringing the rows there and the result back.
template <class Function>
constexpr runtime::Implementation<Function> on_device(runtime::Backend backend, Function* run, std::uint64_t rows,
                                                      const kiln::Needs& needs) {
  return {{backend, runtime::Robustness::Exact, runtime::Precision::Fp64, runtime::Determinism::Deterministic, rows,
           &needs},
          run};
}
/// An OpenCL device may be the processor by another road, as PoCL's is, where rows of the host are never worth the way:
/// auto goes there once `kiln calibrate` has seen that they are.
template <class Function>
constexpr runtime::Implementation<Function> on_opencl(Function* run, const kiln::Needs& needs) {
  return on_device(runtime::Backend::OpenCl, run, runtime::kNever, needs);
}
template <class Function>
constexpr runtime::Implementation<Function> on_cuda(Function* run, std::uint64_t rows, const kiln::Needs& needs) {
  return on_device(runtime::Backend::Cuda, run, rows, needs);
}

/// Of rows on the host boxes are quicker computed than moved.
inline constexpr auto kBoundsOfPoints = runtime::operation<BoundsOfPoints>(
    "spatial.bounds_of_points", runtime::PrecisionClass::Predicate, on_processor(&cpu::bounds_of_points),
    on_opencl(&device::bounds_of_points, opencl::bounds_of_points_needs),
    on_cuda(&device::bounds_of_points, runtime::kNever, cuda::bounds_of_points_needs));

inline constexpr auto kBoundsOfPolygons = runtime::operation<BoundsOfPolygons>(
    "spatial.bounds_of_polygons", runtime::PrecisionClass::Predicate, on_processor(&cpu::bounds_of_polygons),
    on_opencl(&device::bounds_of_polygons, opencl::bounds_of_polygons_needs),
    on_cuda(&device::bounds_of_polygons, runtime::kNever, cuda::bounds_of_polygons_needs));

inline constexpr auto kWithin = runtime::operation<Within>(
    "spatial.within", runtime::PrecisionClass::Predicate, on_processor(&cpu::within),
    on_opencl(&device::within, opencl::within_needs), on_cuda(&device::within, 200'000, cuda::within_needs));

inline constexpr auto kSjoin = runtime::operation<Sjoin>(
    "spatial.sjoin", runtime::PrecisionClass::Predicate, on_processor(&cpu::sjoin),
    on_opencl(&device::sjoin, opencl::sjoin_needs), on_cuda(&device::sjoin, 100'000, cuda::sjoin_needs));

inline constexpr auto kBoxJoin = runtime::operation<Sjoin>(
    "spatial.box_join", runtime::PrecisionClass::Predicate, on_processor(&cpu::box_join),
    on_opencl(&device::box_join, opencl::box_join_needs), on_cuda(&device::box_join, 200'000, cuda::box_join_needs));

/// A join with rectangles compares coordinates and computes nothing.
inline constexpr runtime::Rewrite kJoinOfBoxes{"sjoin of boxes", &kSjoin, &kBoxJoin};

/// Says that such a column is there, so that what every operation on its family needs of a device is compiled in the
/// background: of points nothing that only polygons need.
void open(runtime::Runtime& runtime, const PointColumn& points);
void open(runtime::Runtime& runtime, const PolygonColumn& polygons);

/// The box of each row.
kiln::Result<PlacedBoxes> bounds(runtime::Runtime& runtime, const Points& points);
kiln::Result<PlacedBoxes> bounds(runtime::Runtime& runtime, const Polygons& polygons);
/// Whether point i is within polygon i, or, where there is one polygon, within that one. A point on the boundary is
/// not.
kiln::Result<PlacedMask> within(runtime::Runtime& runtime, const Points& points, const Polygons& polygons);
/// Which points are within which polygons.
kiln::Result<PlacedPairs> sjoin(runtime::Runtime& runtime, const Points& points, const Polygons& polygons);

/// A result on the host, wherever it was. This is the one thing that copies it there.
kiln::Result<Boxes> materialise(runtime::Runtime& runtime, PlacedBoxes boxes);
kiln::Result<Mask> materialise(runtime::Runtime& runtime, PlacedMask mask);
kiln::Result<Pairs> materialise(runtime::Runtime& runtime, PlacedPairs pairs);

}  // namespace spatial
