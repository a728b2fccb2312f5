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
constexpr NamedHeader kInside{"inside.cuh", source::kInside};
constexpr NamedHeader kGrid{"grid.cuh", source::kGridHeader};

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
  const kiln::Unit grid = cuda_unit("grid.cu", source::kGrid, {"grid_begin", "grid_count", "grid_fill"},
                                    {kGeometry, kRows, kBlock, kColumns, kGrid});
  const kiln::Unit candidates =
      cuda_unit("candidates.cu", source::kCandidates, {"candidates_count", "candidates_write"},
                {kGeometry, kRows, kColumns, kGrid});
  const kiln::Unit refine = cuda_unit("refine.cu", source::kRefine, {"refine_candidates"},
                                      {kGeometry, kRows, kExact, kSegments, kRings, kColumns, kInside});
  const kiln::Unit pairs = cuda_unit("pairs.cu", source::kPairs, {"gather_keys", "pairs_of_keys"});
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

}  // namespace

std::vector<kiln::Unit> units() {
  const CudaUnits& all = cuda_units();
  return {all.scan, all.compact,    all.point_bounds, all.polygon_bounds, all.within,
          all.grid, all.candidates, all.refine,       all.pairs};
}

const kiln::Unit* find_unit(const std::string& kernel) {
  const CudaUnits& all = cuda_units();
  for (const kiln::Unit* unit : {&all.scan, &all.compact, &all.point_bounds, &all.polygon_bounds, &all.within,
                                 &all.grid, &all.candidates, &all.refine, &all.pairs}) {
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

}  // namespace spatial::cuda
