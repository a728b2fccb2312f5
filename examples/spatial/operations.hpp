#pragma once

#include <cstdint>

#include <kiln/runtime.hpp>

#include "spatial/cpu/variants.hpp"
#include "spatial/device/variants.hpp"
#include "spatial/operands.hpp"

namespace spatial {

/// The CPU variant and the device variants of an exact operation, which compute in fp64 and are deterministic. All
/// device variants are the same code with different kernels.
template <class Function>
constexpr runtime::Implementation<Function> on_processor(Function* run) {
  return {{runtime::Backend::Cpu, runtime::Robustness::Exact, runtime::Precision::Fp64,
           runtime::Determinism::Deterministic},
          run};
}
/// Uses the device from `rows` rows on, until a calibration of this machine replaces the number (docs/calibration.md).
/// This is the size at which a GPU outweighs the transfer of the rows and the result.
template <class Function>
constexpr runtime::Implementation<Function> on_device(runtime::Backend backend, Function* run, std::uint64_t rows,
                                                      const kiln::Requirements& requirements) {
  return {{backend, runtime::Robustness::Exact, runtime::Precision::Fp64, runtime::Determinism::Deterministic, rows,
           &requirements},
          run};
}
/// An OpenCL device can be the CPU itself, as with PoCL. Moving host rows there is never worthwhile, so auto uses
/// OpenCL only after `kiln calibrate` has measured a benefit.
template <class Function>
constexpr runtime::Implementation<Function> on_opencl(Function* run, const kiln::Requirements& requirements) {
  return on_device(runtime::Backend::OpenCl, run, runtime::kNoCrossover, requirements);
}
template <class Function>
constexpr runtime::Implementation<Function> on_cuda(Function* run, std::uint64_t rows,
                                                    const kiln::Requirements& requirements) {
  return on_device(runtime::Backend::Cuda, run, rows, requirements);
}

/// For rows on the host, computing boxes is faster than transferring the rows.
inline constexpr auto kBoundsOfPoints = runtime::operation<BoundsOfPoints>(
    "spatial.bounds_of_points", runtime::PrecisionClass::Predicate, on_processor(&cpu::bounds_of_points),
    on_opencl(&device::bounds_of_points, opencl::bounds_of_points_requirements),
    on_cuda(&device::bounds_of_points, runtime::kNoCrossover, cuda::bounds_of_points_requirements));

inline constexpr auto kBoundsOfPolygons = runtime::operation<BoundsOfPolygons>(
    "spatial.bounds_of_polygons", runtime::PrecisionClass::Predicate, on_processor(&cpu::bounds_of_polygons),
    on_opencl(&device::bounds_of_polygons, opencl::bounds_of_polygons_requirements),
    on_cuda(&device::bounds_of_polygons, runtime::kNoCrossover, cuda::bounds_of_polygons_requirements));

inline constexpr auto kWithin =
    runtime::operation<Within>("spatial.within", runtime::PrecisionClass::Predicate, on_processor(&cpu::within),
                               on_opencl(&device::within, opencl::within_requirements),
                               on_cuda(&device::within, 200'000, cuda::within_requirements));

inline constexpr auto kSjoin = runtime::operation<Sjoin>(
    "spatial.sjoin", runtime::PrecisionClass::Predicate, on_processor(&cpu::sjoin),
    on_opencl(&device::sjoin, opencl::sjoin_requirements), on_cuda(&device::sjoin, 100'000, cuda::sjoin_requirements));

inline constexpr auto kBoxJoin =
    runtime::operation<Sjoin>("spatial.box_join", runtime::PrecisionClass::Predicate, on_processor(&cpu::box_join),
                              on_opencl(&device::box_join, opencl::box_join_requirements),
                              on_cuda(&device::box_join, 200'000, cuda::box_join_requirements));

/// A join with rectangles only compares coordinates.
inline constexpr runtime::Rewrite kJoinOfBoxes{"sjoin of boxes", &kSjoin, &kBoxJoin};

/// Announces a column, so that the units that every operation on its geometry type needs are compiled in the
/// background. A point column requests nothing that only polygons need.
void open(runtime::Runtime& runtime, const PointColumn& points);
void open(runtime::Runtime& runtime, const PolygonColumn& polygons);

/// Computes the box of each row.
kiln::Result<PlacedBoxes> bounds(runtime::Runtime& runtime, const Points& points);
kiln::Result<PlacedBoxes> bounds(runtime::Runtime& runtime, const Polygons& polygons);
/// Computes whether point i is within polygon i or, if there is one polygon, within that one. A point on the boundary
/// is not within.
kiln::Result<PlacedMask> within(runtime::Runtime& runtime, const Points& points, const Polygons& polygons);
/// Computes which points are within which polygons.
kiln::Result<PlacedPairs> sjoin(runtime::Runtime& runtime, const Points& points, const Polygons& polygons);

/// Returns a result on the host, copying it from a device if necessary. No other function copies results.
kiln::Result<Boxes> materialize(runtime::Runtime& runtime, PlacedBoxes boxes);
kiln::Result<Mask> materialize(runtime::Runtime& runtime, PlacedMask mask);
kiln::Result<Pairs> materialize(runtime::Runtime& runtime, PlacedPairs pairs);

}  // namespace spatial
