// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "spatial/device/pipeline.hpp"

namespace spatial::device {

kiln::Result<DeviceAreas> area(runtime::Dispatch& dispatch, const DevicePolygons& polygons,
                               runtime::Precision precision) {
  DeviceContext& kit = *polygons.kit();
  const runtime::Stage stage(dispatch, "area", &kit.stream());
  auto values = kit.allocate(sizeof(double) * polygons.rows());
  if (!values) return std::move(values).error();
  const auto& at = polygons.at;
  const char* const kernel = precision == runtime::Precision::Fp64 ? "area_fp64" : "area_fp32";
  kiln::Status launched = kit.launch(kernel, polygons.rows(), static_cast<std::int32_t>(polygons.rows()), *at.valid,
                                     at.shells, at.rings, at.offsets, at.x, at.y, *values);
  if (!launched) return std::move(launched).error();
  return DeviceAreas(polygons.kit(), polygons.rows(), at.valid, *std::move(values));
}

kiln::Result<DeviceAreas> box_area(runtime::Dispatch& dispatch, const DevicePolygons& polygons) {
  DeviceContext& kit = *polygons.kit();
  const runtime::Stage stage(dispatch, "area", &kit.stream());
  auto values = kit.allocate(sizeof(double) * polygons.rows());
  if (!values) return std::move(values).error();
  const auto& at = polygons.at;
  kiln::Status launched = kit.launch("box_area", polygons.rows(), static_cast<std::int32_t>(polygons.rows()), *at.valid,
                                     at.rings, at.offsets, at.x, at.y, *values);
  if (!launched) return std::move(launched).error();
  return DeviceAreas(polygons.kit(), polygons.rows(), at.valid, *std::move(values));
}

}  // namespace spatial::device
