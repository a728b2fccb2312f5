// SPDX-License-Identifier: Apache-2.0
#include "spatial/device/cuda_units.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "cuda_sources.hpp"
#include "spatial/device/units.hpp"

namespace spatial::cuda {
namespace {

namespace source = source::cuda;

struct NamedHeader {
  const char* name;
  const char* text;
};

// The headers are passed in memory under the names by which the kernels include them, because an installed program has
// no directory with them.
kiln::Unit cuda_unit(const char* name, const char* text, std::initializer_list<const char*> entries,
                     std::initializer_list<NamedHeader> headers = {}) {
  kiln::Unit unit = kiln::Unit::cuda(name, text).with_option("-std=c++17");
  for (const char* entry : entries) unit = unit.with_entry(entry);
  for (const NamedHeader& header : headers) unit = unit.with_header(header.name, header.text);
  return unit;
}

constexpr NamedHeader kGeometry{"geometry.cuh", source::kGeometry};
constexpr NamedHeader kRows{"rows.cuh", source::kRows};
constexpr NamedHeader kBlock{"block.cuh", source::kBlock};
constexpr NamedHeader kExact{"exact.cuh", source::kExact};
constexpr NamedHeader kSegments{"segments.cuh", source::kSegments};
constexpr NamedHeader kRings{"rings.cuh", source::kRings};
constexpr NamedHeader kColumns{"columns.cuh", source::kColumns};
constexpr NamedHeader kArea{"area.cuh", source::kArea};
constexpr NamedHeader kInside{"inside.cuh", source::kInside};
constexpr NamedHeader kGrid{"grid.cuh", source::kGridHeader};
constexpr NamedHeader kWkb{"wkb.cuh", source::kWkb};
constexpr NamedHeader kDissolve{"dissolve.cuh", source::kDissolve};

// One unit per stage, so that using one stage compiles only that one. Created on first use.
struct CudaUnits {
  const kiln::Unit scan = cuda_unit("scan.cu", source::kScan, {"scan_total"});
  const kiln::Unit compact = cuda_unit("compact.cu", source::kCompact, {"compact_numbers", "compact_indices"});
  const kiln::Unit point_bounds =
      cuda_unit("point_bounds.cu", source::kPointBounds, {"point_bounds"}, {kGeometry, kRows, kColumns});
  const kiln::Unit polygon_bounds =
      cuda_unit("polygon_bounds.cu", source::kPolygonBounds, {"polygon_bounds"}, {kGeometry, kRows, kColumns});
  const kiln::Unit within = cuda_unit("within.cu", source::kWithin, {"within_filter", "within_refine"},
                                      {kGeometry, kRows, kExact, kSegments, kRings, kColumns, kInside});
  const kiln::Unit box_within =
      cuda_unit("box_within.cu", source::kBoxWithin, {"box_within"}, {kGeometry, kRows, kColumns});
  const kiln::Unit area_in_fp64 =
      cuda_unit("area_fp64.cu", source::kAreaFp64, {"area_fp64"}, {kGeometry, kRows, kColumns, kArea});
  const kiln::Unit area_in_fp32 =
      cuda_unit("area_fp32.cu", source::kAreaFp32, {"area_fp32"}, {kGeometry, kRows, kColumns, kArea});
  const kiln::Unit box_area = cuda_unit("box_area.cu", source::kBoxArea, {"box_area"}, {kGeometry, kRows, kColumns});
  const kiln::Unit grid = cuda_unit("grid.cu", source::kGrid, {"grid_begin", "grid_count", "grid_fill"},
                                    {kGeometry, kRows, kBlock, kColumns, kGrid});
  const kiln::Unit candidates =
      cuda_unit("candidates.cu", source::kCandidates, {"candidates_count", "candidates_write"},
                {kGeometry, kRows, kColumns, kGrid});
  const kiln::Unit refine = cuda_unit("refine.cu", source::kRefine, {"refine_candidates"},
                                      {kGeometry, kRows, kExact, kSegments, kRings, kColumns, kInside});
  const kiln::Unit pairs = cuda_unit("pairs.cu", source::kPairs, {"gather_keys", "pairs_of_keys"});
  const kiln::Unit unique = cuda_unit("unique.cu", source::kUnique, {"unique_keys", "unique_end"});
  const kiln::Unit wkb_points = cuda_unit("wkb_points.cu", source::kWkbPoints, {"wkb_point_sizes", "wkb_points"},
                                          {kGeometry, kRows, kColumns, kWkb});
  const kiln::Unit wkb_polygons = cuda_unit(
      "wkb_polygons.cu", source::kWkbPolygons,
      {"wkb_shells", "wkb_polygon_sizes", "wkb_rows", "wkb_rings", "wkb_vertices"}, {kGeometry, kRows, kColumns, kWkb});
  const kiln::Unit groups = cuda_unit("groups.cu", source::kGroups, {"group_keys", "group_ranks", "group_rows"},
                                      {kGeometry, kRows, kExact, kSegments, kColumns, kDissolve});
  const kiln::Unit edges =
      cuda_unit("edges.cu", source::kEdges, {"ring_sides", "edge_keys", "edge_cancel", "dissolve_check"},
                {kGeometry, kRows, kExact, kSegments, kColumns, kDissolve});
  const kiln::Unit links =
      cuda_unit("links.cu", source::kLinks, {"boundary_keys", "link_edges", "jump_begin", "jump_ahead", "ring_labels"},
                {kGeometry, kRows, kExact, kSegments, kColumns, kDissolve});
  const kiln::Unit parts = cuda_unit("parts.cu", source::kParts,
                                     {"ring_keys", "ring_lengths", "place_edges", "leftmost_heights", "ring_turns",
                                      "ring_shells", "ring_sizes", "shell_bits", "group_rings", "write_rings"},
                                     {kGeometry, kRows, kExact, kSegments, kColumns, kDissolve});
};

const CudaUnits& cuda_units() {
  static const CudaUnits units;
  return units;
}

kiln::cccl::Spec make_saturating_scan() {
  const auto number = kiln::cccl::Iterator::pointer(kiln::cccl::Type::of(kiln::cccl::Scalar::U32));
  kiln::cccl::Spec spec;
  spec.name = "saturating_scan_u32";
  spec.algorithm = kiln::cccl::Algorithm::Scan;
  spec.iterators = {number, number};
  spec.operators = {
      kiln::cccl::Operator::from_source("spatial_add",
                                        "extern \"C\" __device__ void spatial_add(void* a, void* b, void* result) {\n"
                                        "  const unsigned first = *static_cast<const unsigned*>(a);\n"
                                        "  const unsigned sum = first + *static_cast<const unsigned*>(b);\n"
                                        "  *static_cast<unsigned*>(result) = sum < first ? 0xffffffffu : sum;\n"
                                        "}\n")};
  spec.type = kiln::cccl::Type::of(kiln::cccl::Scalar::U32);
  return spec;
}

kiln::cccl::Spec make_segmented_reduction(kiln::cccl::OperatorKind op) {
  kiln::cccl::Spec spec = kiln::cccl::segmented_reduce<double>(op);
  const auto offset = kiln::cccl::Iterator::pointer(kiln::cccl::Type::of(kiln::cccl::Scalar::U32));
  spec.name += "_by_u32";
  spec.iterators[2] = offset;
  spec.iterators[3] = offset;
  return spec;
}

}  // namespace

std::vector<kiln::Unit> units() {
  const CudaUnits& all = cuda_units();
  return {all.scan,   all.compact, all.point_bounds, all.polygon_bounds, all.within,       all.grid,    all.candidates,
          all.refine, all.pairs,   all.unique,       all.wkb_points,     all.wkb_polygons, all.groups,  all.edges,
          all.links,  all.parts,   all.box_within,   all.area_in_fp64,   all.area_in_fp32, all.box_area};
}

const kiln::Unit* find_unit(const std::string& kernel) {
  const CudaUnits& all = cuda_units();
  for (const kiln::Unit* unit :
       {&all.scan,       &all.compact,      &all.point_bounds, &all.polygon_bounds, &all.within,
        &all.grid,       &all.candidates,   &all.refine,       &all.pairs,          &all.unique,
        &all.wkb_points, &all.wkb_polygons, &all.groups,       &all.edges,          &all.links,
        &all.parts,      &all.box_within,   &all.area_in_fp64, &all.area_in_fp32,   &all.box_area}) {
    const auto& entries = unit->entries();
    if (std::find(entries.begin(), entries.end(), kernel) != entries.end()) return unit;
  }
  return nullptr;
}

const kiln::cccl::Spec& saturating_scan() {
  static const kiln::cccl::Spec spec = make_saturating_scan();
  return spec;
}

const kiln::cccl::Spec& selection() {
  static const kiln::cccl::Spec spec = kiln::cccl::select<std::int32_t>("x != 0");
  return spec;
}

const kiln::cccl::Spec& sort() {
  static const kiln::cccl::Spec spec = kiln::cccl::radix_sort_pairs<std::uint64_t, std::int32_t>();
  return spec;
}

const kiln::cccl::Spec& unique() {
  static const kiln::cccl::Spec spec = kiln::cccl::unique_by_key<std::int32_t, std::int32_t>();
  return spec;
}

const kiln::cccl::Spec& segmented_reduction(Reduction reduction) {
  static const kiln::cccl::Spec sum = make_segmented_reduction(kiln::cccl::OperatorKind::Plus);
  static const kiln::cccl::Spec minimum = make_segmented_reduction(kiln::cccl::OperatorKind::Minimum);
  static const kiln::cccl::Spec maximum = make_segmented_reduction(kiln::cccl::OperatorKind::Maximum);
  if (reduction == Reduction::Sum) return sum;
  return reduction == Reduction::Minimum ? minimum : maximum;
}

constinit const kiln::Requirements point_column_requirements{"spatial, points on CUDA",
                                                             [] { return kiln::Units{cuda_units().point_bounds}; }};
constinit const kiln::Requirements polygon_column_requirements{"spatial, polygons on CUDA",
                                                               [] { return kiln::Units{cuda_units().polygon_bounds}; }};
constinit const kiln::Requirements bounds_of_points_requirements{"spatial.bounds_of_points on CUDA",
                                                                 [] { return kiln::Units{cuda_units().point_bounds}; }};
constinit const kiln::Requirements bounds_of_polygons_requirements{
    "spatial.bounds_of_polygons on CUDA", [] { return kiln::Units{cuda_units().polygon_bounds}; }};
constinit const kiln::Requirements within_requirements{
    "spatial.within on CUDA", [] {
      const CudaUnits& all = cuda_units();
      return kiln::Units{selection(), all.polygon_bounds, all.within, all.compact};
    }};
constinit const kiln::Requirements box_within_requirements{"spatial.box_within on CUDA", [] {
                                                             const CudaUnits& all = cuda_units();
                                                             return kiln::Units{all.polygon_bounds, all.box_within};
                                                           }};
constinit const kiln::Requirements area_in_fp64_requirements{"spatial.area in fp64 on CUDA",
                                                             [] { return kiln::Units{cuda_units().area_in_fp64}; }};
constinit const kiln::Requirements area_in_fp32_requirements{"spatial.area in fp32 on CUDA",
                                                             [] { return kiln::Units{cuda_units().area_in_fp32}; }};
constinit const kiln::Requirements box_area_requirements{"spatial.box_area on CUDA",
                                                         [] { return kiln::Units{cuda_units().box_area}; }};
// The units that take longest to compile come first.
constinit const kiln::Requirements sjoin_requirements{
    "spatial.sjoin on CUDA", [] {
      const CudaUnits& all = cuda_units();
      return kiln::Units{sort(),   saturating_scan(), selection(), all.polygon_bounds, all.grid,
                         all.scan, all.candidates,    all.refine,  all.compact,        all.pairs};
    }};
constinit const kiln::Requirements box_join_requirements{
    "spatial.box_join on CUDA", [] {
      const CudaUnits& all = cuda_units();
      return kiln::Units{sort(), saturating_scan(), all.polygon_bounds, all.grid, all.scan, all.candidates, all.pairs};
    }};

constinit const kiln::Requirements wkb_of_points_requirements{
    "spatial.wkb_of_points on CUDA", [] {
      const CudaUnits& all = cuda_units();
      return kiln::Units{saturating_scan(), all.wkb_points, all.scan};
    }};
constinit const kiln::Requirements wkb_of_polygons_requirements{
    "spatial.wkb_of_polygons on CUDA", [] {
      const CudaUnits& all = cuda_units();
      return kiln::Units{saturating_scan(), all.wkb_polygons, all.scan};
    }};
constinit const kiln::Requirements dissolve_requirements{"spatial.dissolve on CUDA", [] {
                                                           const CudaUnits& all = cuda_units();
                                                           return kiln::Units{sort(),
                                                                              saturating_scan(),
                                                                              selection(),
                                                                              unique(),
                                                                              segmented_reduction(Reduction::Minimum),
                                                                              segmented_reduction(Reduction::Maximum),
                                                                              all.links,
                                                                              all.parts,
                                                                              all.edges,
                                                                              all.groups,
                                                                              all.unique,
                                                                              all.compact,
                                                                              all.scan};
                                                         }};

}  // namespace spatial::cuda
