#pragma once

#include <kiln/runtime.hpp>

#include "spatial/cpu/variants.hpp"
#include "spatial/device/variants.hpp"
#include "spatial/operands.hpp"

namespace spatial {

/// A variant on OpenCL: as exact as the processor's, in doubles, and the same each time.
constexpr runtime::Variant on_opencl(std::uint64_t crossover, const kiln::Needs& needs) {
  return {runtime::Backend::OpenCl,
          runtime::Robustness::Exact,
          runtime::Precision::Fp64,
          runtime::Determinism::Deterministic,
          crossover,
          &needs};
}

inline constexpr auto kBoundsOfPoints = runtime::operation<BoundsOfPoints>(
    "spatial.bounds_of_points", runtime::PrecisionClass::Predicate,
    runtime::Implementation<BoundsOfPoints>{{runtime::Backend::Cpu}, &cpu::bounds_of_points},
    runtime::Implementation<BoundsOfPoints>{on_opencl(runtime::kNever, opencl::bounds_of_points_needs),
                                            &device::bounds_of_points});

inline constexpr auto kBoundsOfPolygons = runtime::operation<BoundsOfPolygons>(
    "spatial.bounds_of_polygons", runtime::PrecisionClass::Predicate,
    runtime::Implementation<BoundsOfPolygons>{{runtime::Backend::Cpu}, &cpu::bounds_of_polygons},
    runtime::Implementation<BoundsOfPolygons>{on_opencl(runtime::kNever, opencl::bounds_of_polygons_needs),
                                              &device::bounds_of_polygons});

inline constexpr auto kWithin = runtime::operation<Within>(
    "spatial.within", runtime::PrecisionClass::Predicate,
    runtime::Implementation<Within>{{runtime::Backend::Cpu}, &cpu::within},
    runtime::Implementation<Within>{on_opencl(100'000, opencl::within_needs), &device::within});

inline constexpr auto kSjoin =
    runtime::operation<Sjoin>("spatial.sjoin", runtime::PrecisionClass::Predicate,
                              runtime::Implementation<Sjoin>{{runtime::Backend::Cpu}, &cpu::sjoin},
                              runtime::Implementation<Sjoin>{on_opencl(100'000, opencl::sjoin_needs), &device::sjoin});

inline constexpr auto kBoxJoin = runtime::operation<Sjoin>(
    "spatial.box_join", runtime::PrecisionClass::Predicate,
    runtime::Implementation<Sjoin>{{runtime::Backend::Cpu}, &cpu::box_join},
    runtime::Implementation<Sjoin>{on_opencl(100'000, opencl::box_join_needs), &device::box_join});

/// A join with rectangles compares coordinates and computes nothing.
inline constexpr runtime::Rewrite kJoinOfBoxes{"sjoin of boxes", &kSjoin, &kBoxJoin};

/// The box of each row.
kiln::Result<PlacedBoxes> bounds(runtime::Runtime& runtime, const Points& points);
kiln::Result<PlacedBoxes> bounds(runtime::Runtime& runtime, const Polygons& polygons);
/// Whether point i is within polygon i, or, where there is one polygon, within that one. A point on the boundary is
/// not.
kiln::Result<PlacedMask> within(runtime::Runtime& runtime, const Points& points, const Polygons& polygons);
/// Which points are within which polygons.
kiln::Result<PlacedPairs> sjoin(runtime::Runtime& runtime, const Points& points, const Polygons& polygons);

}  // namespace spatial
