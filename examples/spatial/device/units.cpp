// SPDX-License-Identifier: Apache-2.0
#include "spatial/device/units.hpp"

#include <stdlib.h>

#include <algorithm>

#include "sources.hpp"
#include "spatial/device/cuda_units.hpp"

namespace spatial {
namespace {

kiln::Unit unit_of(const char* name, std::string source, std::initializer_list<const char*> entries) {
  kiln::Unit unit = kiln::Unit::opencl(name, std::move(source));
  for (const char* entry : entries) unit = unit.with_entry(entry);
  return unit;
}

std::string text(std::initializer_list<const char*> parts) {
  std::string all;
  for (const char* part : parts) all += part;
  return all;
}

// One unit per stage, so that using one stage compiles only that one. Created on first use.
struct OpenClUnits {
  const kiln::Unit scan = unit_of("scan.cl", text({source::kTiles, source::kScan}), {"scan_sums", "scan_offsets"});
  const kiln::Unit compact = unit_of("compact.cl", text({source::kTiles, source::kCompact}),
                                     {"compact_counts", "compact_tiles", "compact_indices"});
  const kiln::Unit sort =
      unit_of("radix_sort.cl", text({source::kTiles, source::kRadixSort}), {"sort_counts", "sort_scatter"});
  const kiln::Unit point_bounds =
      unit_of("point_bounds.cl", text({source::kColumns, source::kPointBounds}), {"point_bounds"});
  const kiln::Unit polygon_bounds =
      unit_of("polygon_bounds.cl", text({source::kColumns, source::kPolygonBounds}), {"polygon_bounds"});
  const kiln::Unit within = unit_of("within.cl", text({source::kColumns, source::kExact, source::kWithin}),
                                    {"within_filter", "within_refine"});
  const kiln::Unit box_within = unit_of("box_within.cl", text({source::kColumns, source::kBoxWithin}), {"box_within"});
  const kiln::Unit area_in_fp64 =
      unit_of("area_fp64.cl", text({"#define REAL double\n#define AREA area_fp64\n", source::kColumns, source::kArea}),
              {"area_fp64"});
  const kiln::Unit area_in_fp32 =
      unit_of("area_fp32.cl", text({"#define REAL float\n#define AREA area_fp32\n", source::kColumns, source::kArea}),
              {"area_fp32"});
  const kiln::Unit box_area = unit_of("box_area.cl", text({source::kColumns, source::kBoxArea}), {"box_area"});
  const kiln::Unit grid = unit_of("grid.cl", text({source::kColumns, source::kGridHeader, source::kGrid}),
                                  {"grid_begin", "grid_count", "grid_fill"});
  const kiln::Unit candidates =
      unit_of("candidates.cl", text({source::kColumns, source::kGridHeader, source::kCandidates}),
              {"candidates_count", "candidates_write"});
  const kiln::Unit refine =
      unit_of("refine.cl", text({source::kColumns, source::kExact, source::kRefine}), {"refine_candidates"});
  const kiln::Unit pairs =
      unit_of("pairs.cl", text({source::kColumns, source::kPairs}), {"gather_keys", "pairs_of_keys"});
  const kiln::Unit unique =
      unit_of("unique.cl", text({source::kColumns, source::kUnique}), {"unique_flags", "unique_end"});
  const kiln::Unit segmented_reduce = unit_of("segmented_reduce.cl", source::kSegmentedReduce, {"segmented_reduce"});
  const kiln::Unit wkb_points = unit_of("wkb_points.cl", text({source::kColumns, source::kWkb, source::kWkbPoints}),
                                        {"wkb_point_sizes", "wkb_points"});
  const kiln::Unit wkb_polygons =
      unit_of("wkb_polygons.cl", text({source::kColumns, source::kWkb, source::kWkbPolygons}),
              {"wkb_shells", "wkb_polygon_sizes", "wkb_rows", "wkb_rings", "wkb_vertices"});
  const kiln::Unit groups =
      unit_of("groups.cl", text({source::kColumns, source::kGroups}), {"group_keys", "group_ranks", "group_rows"});
  const kiln::Unit edges =
      unit_of("edges.cl", text({source::kColumns, source::kExact, source::kDissolve, source::kEdges}),
              {"ring_sides", "edge_keys", "edge_cancel", "dissolve_check"});
  const kiln::Unit links =
      unit_of("links.cl", text({source::kColumns, source::kExact, source::kDissolve, source::kLinks}),
              {"boundary_keys", "link_edges", "jump_begin", "jump_ahead", "ring_labels"});
  const kiln::Unit parts =
      unit_of("parts.cl", text({source::kColumns, source::kExact, source::kDissolve, source::kParts}),
              {"ring_keys", "ring_lengths", "place_edges", "leftmost_heights", "ring_turns", "ring_shells",
               "ring_sizes", "shell_bits", "group_rings", "write_rings"});
};

const OpenClUnits& opencl_units() {
  static const OpenClUnits units;
  return units;
}

}  // namespace

const kiln::Unit* find_unit(kiln::runtime::Backend backend, const std::string& kernel) {
  if (backend == kiln::runtime::Backend::Cuda) return cuda::find_unit(kernel);
  if (backend != kiln::runtime::Backend::OpenCl) return nullptr;
  const OpenClUnits& all = opencl_units();
  for (const kiln::Unit* unit : {&all.scan,           &all.compact,      &all.sort,       &all.point_bounds,
                                 &all.polygon_bounds, &all.within,       &all.box_within, &all.area_in_fp64,
                                 &all.area_in_fp32,   &all.box_area,     &all.grid,       &all.candidates,
                                 &all.refine,         &all.pairs,        &all.unique,     &all.segmented_reduce,
                                 &all.wkb_points,     &all.wkb_polygons, &all.groups,     &all.edges,
                                 &all.links,          &all.parts}) {
    const auto& entries = unit->entries();
    if (std::find(entries.begin(), entries.end(), kernel) != entries.end()) return unit;
  }
  return nullptr;
}

void let_pocl_keep_work_groups() {
  // PoCL calls a launch of fewer than 2^16 work items small. The variable takes one word per work group size.
  setenv("POCL_BINARY_SPECIALIZE_WG", "64-1-1-goffs0-smallgrid", 0);
}

namespace opencl {

constinit const kiln::Requirements point_column_requirements{"spatial, points",
                                                             [] { return kiln::Units{opencl_units().point_bounds}; }};
constinit const kiln::Requirements polygon_column_requirements{
    "spatial, polygons", [] { return kiln::Units{opencl_units().polygon_bounds}; }};
constinit const kiln::Requirements bounds_of_points_requirements{
    "spatial.bounds_of_points", [] { return kiln::Units{opencl_units().point_bounds}; }};
constinit const kiln::Requirements bounds_of_polygons_requirements{
    "spatial.bounds_of_polygons", [] { return kiln::Units{opencl_units().polygon_bounds}; }};
constinit const kiln::Requirements within_requirements{
    "spatial.within", [] {
      const OpenClUnits& all = opencl_units();
      return kiln::Units{all.polygon_bounds, all.within, all.compact};
    }};
constinit const kiln::Requirements box_within_requirements{"spatial.box_within", [] {
                                                             const OpenClUnits& all = opencl_units();
                                                             return kiln::Units{all.polygon_bounds, all.box_within};
                                                           }};
constinit const kiln::Requirements area_in_fp64_requirements{"spatial.area in fp64",
                                                             [] { return kiln::Units{opencl_units().area_in_fp64}; }};
constinit const kiln::Requirements area_in_fp32_requirements{"spatial.area in fp32",
                                                             [] { return kiln::Units{opencl_units().area_in_fp32}; }};
constinit const kiln::Requirements box_area_requirements{"spatial.box_area",
                                                         [] { return kiln::Units{opencl_units().box_area}; }};
constinit const kiln::Requirements sjoin_requirements{"spatial.sjoin", [] {
                                                        const OpenClUnits& all = opencl_units();
                                                        return kiln::Units{all.polygon_bounds, all.grid,   all.scan,
                                                                           all.candidates,     all.refine, all.compact,
                                                                           all.sort,           all.pairs};
                                                      }};
constinit const kiln::Requirements box_join_requirements{"spatial.box_join", [] {
                                                           const OpenClUnits& all = opencl_units();
                                                           return kiln::Units{all.polygon_bounds, all.grid, all.scan,
                                                                              all.candidates,     all.sort, all.pairs};
                                                         }};
constinit const kiln::Requirements wkb_of_points_requirements{"spatial.wkb_of_points", [] {
                                                                const OpenClUnits& all = opencl_units();
                                                                return kiln::Units{all.wkb_points, all.scan};
                                                              }};
constinit const kiln::Requirements wkb_of_polygons_requirements{"spatial.wkb_of_polygons", [] {
                                                                  const OpenClUnits& all = opencl_units();
                                                                  return kiln::Units{all.wkb_polygons, all.scan};
                                                                }};
constinit const kiln::Requirements dissolve_requirements{
    "spatial.dissolve", [] {
      const OpenClUnits& all = opencl_units();
      return kiln::Units{all.groups, all.sort,  all.scan,  all.unique,          all.compact,
                         all.edges,  all.links, all.parts, all.segmented_reduce};
    }};

}  // namespace opencl
}  // namespace spatial
