// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <kiln/runtime.hpp>

#include "spatial/cpu/variants.hpp"
#include "spatial/device/variants.hpp"
#include "spatial/operands.hpp"

namespace spatial {

/// What a variant claims. All variants here are deterministic.
struct Claims {
  runtime::Robustness robustness;
  runtime::Precision precision;
};
inline constexpr Claims kExact{runtime::Robustness::Exact, runtime::Precision::Fp64};
/// Areas, whose error bounds are in examples/spatial/README.md.
inline constexpr Claims kBoundedInFp64{runtime::Robustness::Bounded, runtime::Precision::Fp64};
inline constexpr Claims kBoundedInFp32{runtime::Robustness::Bounded, runtime::Precision::Fp32};

/// The CPU variant and the device variants of an operation, which is exact unless other claims are given. All device
/// variants are the same code with different kernels.
template <class Function>
constexpr runtime::Implementation<Function> on_processor(Function* run, Claims claims = kExact) {
  return {{runtime::Backend::Cpu, claims.robustness, claims.precision, runtime::Determinism::Deterministic}, run};
}
/// Uses the device from `rows` rows on, until a calibration of this machine replaces the number
/// (docs/how-to/calibrate.md). This is the size at which a GPU outweighs the transfer of the rows and the result.
template <class Function>
constexpr runtime::Implementation<Function> on_device(runtime::Backend backend, Function* run, std::uint64_t rows,
                                                      const kiln::Requirements& requirements, Claims claims = kExact) {
  return {{backend, claims.robustness, claims.precision, runtime::Determinism::Deterministic, rows, &requirements},
          run};
}
/// An OpenCL device can be the CPU itself, as with PoCL. Moving host rows there is never worthwhile, so auto uses
/// OpenCL only after `kiln calibrate` has measured a benefit.
template <class Function>
constexpr runtime::Implementation<Function> on_opencl(Function* run, const kiln::Requirements& requirements,
                                                      Claims claims = kExact) {
  return on_device(runtime::Backend::OpenCl, run, runtime::kNoCrossover, requirements, claims);
}
template <class Function>
constexpr runtime::Implementation<Function> on_cuda(Function* run, std::uint64_t rows,
                                                    const kiln::Requirements& requirements, Claims claims = kExact) {
  return on_device(runtime::Backend::Cuda, run, rows, requirements, claims);
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

inline constexpr auto kBoxWithin =
    runtime::operation<Within>("spatial.box_within", runtime::PrecisionClass::Predicate, on_processor(&cpu::box_within),
                               on_opencl(&device::box_within, opencl::box_within_requirements),
                               on_cuda(&device::box_within, runtime::kNoCrossover, cuda::box_within_requirements));

/// The plan selects the precision: fp32 where the device computes fp64 much more slowly. For rows on the host,
/// computing areas is faster than transferring the rows.
inline constexpr auto kArea = runtime::operation<AreaOfPolygons>(
    "spatial.area", runtime::PrecisionClass::Metric, on_processor(&cpu::area, kBoundedInFp64),
    on_opencl(&device::area_in_fp64, opencl::area_in_fp64_requirements, kBoundedInFp64),
    on_opencl(&device::area_in_fp32, opencl::area_in_fp32_requirements, kBoundedInFp32),
    on_cuda(&device::area_in_fp64, runtime::kNoCrossover, cuda::area_in_fp64_requirements, kBoundedInFp64),
    on_cuda(&device::area_in_fp32, runtime::kNoCrossover, cuda::area_in_fp32_requirements, kBoundedInFp32));

inline constexpr auto kBoxArea = runtime::operation<AreaOfPolygons>(
    "spatial.box_area", runtime::PrecisionClass::Metric, on_processor(&cpu::box_area, kBoundedInFp64),
    on_opencl(&device::box_area, opencl::box_area_requirements, kBoundedInFp64),
    on_cuda(&device::box_area, runtime::kNoCrossover, cuda::box_area_requirements, kBoundedInFp64));

inline constexpr auto kSjoin = runtime::operation<Sjoin>(
    "spatial.sjoin", runtime::PrecisionClass::Predicate, on_processor(&cpu::sjoin),
    on_opencl(&device::sjoin, opencl::sjoin_requirements), on_cuda(&device::sjoin, 100'000, cuda::sjoin_requirements));

inline constexpr auto kBoxJoin =
    runtime::operation<Sjoin>("spatial.box_join", runtime::PrecisionClass::Predicate, on_processor(&cpu::box_join),
                              on_opencl(&device::box_join, opencl::box_join_requirements),
                              on_cuda(&device::box_join, 200'000, cuda::box_join_requirements));

/// For rows on the host, writing the bytes is faster than transferring the rows and the bytes.
inline constexpr auto kWkbOfPoints = runtime::operation<WkbOfPoints>(
    "spatial.wkb_of_points", runtime::PrecisionClass::Constructive, on_processor(&cpu::wkb_of_points),
    on_opencl(&device::wkb_of_points, opencl::wkb_of_points_requirements),
    on_cuda(&device::wkb_of_points, runtime::kNoCrossover, cuda::wkb_of_points_requirements));

inline constexpr auto kWkbOfPolygons = runtime::operation<WkbOfPolygons>(
    "spatial.wkb_of_polygons", runtime::PrecisionClass::Constructive, on_processor(&cpu::wkb_of_polygons),
    on_opencl(&device::wkb_of_polygons, opencl::wkb_of_polygons_requirements),
    on_cuda(&device::wkb_of_polygons, runtime::kNoCrossover, cuda::wkb_of_polygons_requirements));

/// Exact for coverages: the result has only coordinates of the input, and comparisons of them are exact.
inline constexpr auto kDissolve = runtime::operation<Dissolve>(
    "spatial.dissolve", runtime::PrecisionClass::Constructive, on_processor(&cpu::dissolve),
    on_opencl(&device::dissolve, opencl::dissolve_requirements),
    on_cuda(&device::dissolve, 50'000, cuda::dissolve_requirements));

/// Returns whether every polygon is null, empty, or a rectangle with sides parallel to the axes: it is its own box.
bool only_rectangles(const Polygons& polygons);
inline bool polygons_are_rectangles(const Points& /*points*/, const Polygons& polygons) {
  return only_rectangles(polygons);
}

/// The rewrites. Null and empty rows are no exception: the operations treat them alike.
inline constexpr runtime::RewriteRule<Points, Polygons> kRulesOfPointsAndPolygons[] = {
    {{"sjoin of boxes", &kSjoin, &kBoxJoin}, &polygons_are_rectangles},
    {{"within of boxes", &kWithin, &kBoxWithin}, &polygons_are_rectangles}};
inline constexpr runtime::RewriteRule<Polygons> kRulesOfPolygons[] = {
    {{"area of boxes", &kArea, &kBoxArea}, &only_rectangles}};

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
/// Computes the area of each row: the areas of its shells minus those of its holes.
kiln::Result<PlacedAreas> area(runtime::Runtime& runtime, const Polygons& polygons);
/// Computes which points are within which polygons.
kiln::Result<PlacedPairs> sjoin(runtime::Runtime& runtime, const Points& points, const Polygons& polygons);
/// Writes each row as WKB, in little-endian byte order. A row of one part is a POLYGON, one of several parts a
/// MULTIPOLYGON. A null row has no bytes; an empty row has those of an empty POINT or POLYGON.
kiln::Result<PlacedWkb> to_wkb(runtime::Runtime& runtime, const Points& points);
kiln::Result<PlacedWkb> to_wkb(runtime::Runtime& runtime, const Polygons& polygons);
/// Merges the polygons of each key. The polygons of one key must be valid and a coverage: they do not overlap, and
/// where they touch in a line they have the same vertices. Null rows are left out; a key that has only null rows gives
/// a null row. An edge that occurs more than twice, or twice in one direction, is an error; other inputs that are not a
/// coverage give rings that overlap.
kiln::Result<PlacedDissolved> dissolve(runtime::Runtime& runtime, const Polygons& polygons, const Keys& keys);

/// Returns a result on the host, copying it from a device if necessary. No other function copies results.
kiln::Result<Boxes> materialize(runtime::Runtime& runtime, PlacedBoxes boxes);
kiln::Result<Areas> materialize(runtime::Runtime& runtime, PlacedAreas areas);
kiln::Result<Mask> materialize(runtime::Runtime& runtime, PlacedMask mask);
kiln::Result<Pairs> materialize(runtime::Runtime& runtime, PlacedPairs pairs);
kiln::Result<WkbColumn> materialize(runtime::Runtime& runtime, PlacedWkb wkb);
kiln::Result<Dissolved> materialize(runtime::Runtime& runtime, PlacedDissolved dissolved);

}  // namespace spatial
