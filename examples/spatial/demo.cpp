// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "spatial/commands.hpp"
#include "spatial/demo_report.hpp"
#include "spatial/device/device_column.hpp"
#include "spatial/operations.hpp"

namespace spatial {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

runtime::RuntimeOptions runtime_options(const std::string& backend) {
  runtime::RuntimeOptions options;
  if (backend == "cpu") options.mode = runtime::Mode::Cpu;
  if (backend == "opencl" || backend == "cuda") {
    options.mode = runtime::Mode::Gpu;
    options.devices = {backend == "opencl" ? runtime::Backend::OpenCl : runtime::Backend::Cuda};
  }
  // Otherwise KILN_EXECUTION_MODE selects the mode; the default is auto.
  return options;
}

using Operations = std::vector<const runtime::Operation*>;

Operations operations_of(const std::string& name) {
  if (name == "within") return {&kWithin};
  if (name == "to_wkb") return {&kWkbOfPolygons};
  if (name == "dissolve") return {&kDissolve, &kWkbOfPolygons};
  return {&kSjoin};
}

/// Requests the units of the operations. Returns at once: kiln compiles them on other threads while the program makes
/// its data. In mode auto, the decision requests the units of what it selects.
void request_units(runtime::Runtime& runtime, const Operations& operations) {
  if (runtime.mode() != runtime::Mode::Gpu) return;
  for (const runtime::Operation* operation : operations) {
    for (const runtime::Variant& variant : *operation) {
      if (variant.requirements != nullptr) runtime.request(variant.backend, *variant.requirements);
    }
  }
}

/// Waits until the units of the operations are ready on the selected backend: once for all of them, before the
/// operation, so that no stage of it waits for a compiler. Returns the time.
double warm_up(runtime::Runtime& runtime, const Operations& operations, runtime::Backend selected) {
  const auto start = Clock::now();
  kiln::WarmupPlan plan("spatial demo");
  for (const runtime::Operation* operation : operations) {
    for (const runtime::Variant& variant : *operation) {
      if (variant.backend == selected && variant.requirements != nullptr) plan.stage(*variant.requirements);
    }
  }
  (void)plan.ensure_warm(runtime.session(), kiln::kForever);  // the operation reports the error of a unit that failed
  return ms_since(start);
}

/// Columns that were uploaded to a device before the operation.
struct OnOneDevice {
  DevicePoints points;
  DevicePolygons polygons;
  DeviceKeys keys;
};

/// Fails before the upload where the operation would fail after it: if the device is a CPU that is not allowed.
kiln::Status check_device(runtime::Runtime& runtime, runtime::Backend backend) {
  if (runtime.allow_cpu_device()) return {};
  const auto devices = runtime.session().devices(runtime::device_backend(backend));
  if (!devices) return devices.error();
  if (devices->empty() || !devices->front().is_cpu) return {};
  return kiln::Error{
      kiln::Code::Unavailable,
      "the OpenCL device \"" + devices->front().name + "\" is a CPU; set KILN_ALLOW_CPU_DEVICE=1 to use it",
      {}};
}

kiln::Result<OnOneDevice> bring(runtime::Runtime& runtime, const SyntheticData& scene) {
  const runtime::Backend backend = runtime.options().devices.front();
  if (kiln::Status status = check_device(runtime, backend); !status) return status.error();
  kiln::Result<std::shared_ptr<DeviceContext>> kit = DeviceContext::open(runtime.session(), backend);
  if (!kit) return kit.error();
  kiln::Result<DevicePoints> points = upload(runtime, *kit, scene.points);
  if (!points) return points.error();
  kiln::Result<DevicePolygons> polygons = upload(runtime, *kit, scene.polygons);
  if (!polygons) return polygons.error();
  kiln::Result<DeviceKeys> keys = upload(runtime, *kit, scene.keys);
  if (!keys) return keys.error();
  return OnOneDevice{*std::move(points), *std::move(polygons), *std::move(keys)};
}

/// Writes the rows as WKB and copies that to the host.
kiln::Status take_wkb(runtime::Runtime& runtime, const Polygons& polygons, DemoReport& report) {
  kiln::Result<PlacedWkb> wkb = to_wkb(runtime, polygons);
  if (!wkb) return wkb.error();
  kiln::Result<WkbColumn> result = materialize(runtime, *std::move(wkb));
  if (!result) return result.error();
  report.take(*result);
  return {};
}

/// Runs the operation and copies its result to the host, which ends the workflow.
kiln::Status compute(runtime::Runtime& runtime, const std::string& operation, const Points& points,
                     const Polygons& polygons, const Keys& keys, DemoReport& report) {
  if (operation == "to_wkb") return take_wkb(runtime, polygons, report);
  if (operation == "dissolve") {
    const kiln::Result<PlacedDissolved> merged = dissolve(runtime, polygons, keys);
    if (!merged) return merged.error();
    if (merged->device != nullptr) return take_wkb(runtime, merged->device->polygons, report);
    return take_wkb(runtime, merged->host.polygons, report);
  }
  if (operation == "within") {
    kiln::Result<PlacedMask> mask = within(runtime, points, polygons);
    if (!mask) return mask.error();
    kiln::Result<Mask> result = materialize(runtime, *std::move(mask));
    if (!result) return result.error();
    Pairs pairs;
    for (std::size_t row = 0; row < result->inside.size(); ++row) {
      if (result->inside[row]) pairs.push_back({static_cast<std::int32_t>(row), 0});
    }
    report.take(pairs);
    return {};
  }
  kiln::Result<PlacedPairs> pairs = sjoin(runtime, points, polygons);
  if (!pairs) return pairs.error();
  kiln::Result<Pairs> result = materialize(runtime, *std::move(pairs));
  if (!result) return result.error();
  report.take(*result);
  return {};
}

kiln::Status run(runtime::Runtime& runtime, const DemoOptions& options, const SyntheticData& scene,
                 DemoReport& report) {
  std::optional<OnOneDevice> there;
  auto start = Clock::now();
  if (options.backend == "opencl" || options.backend == "cuda") {
    kiln::Result<OnOneDevice> brought = bring(runtime, scene);
    if (!brought) return brought.error();
    there.emplace(*std::move(brought));
    report.upload_ms = ms_since(start);
  }
  const Points points = there ? Points(there->points) : Points(scene.points);
  const Polygons polygons = there ? Polygons(there->polygons) : Polygons(scene.polygons);
  const Keys keys = there ? Keys(there->keys) : Keys(scene.keys);
  const Operations operations = operations_of(options.operation);
  kiln::Result<runtime::Workflow> workflow =
      runtime::Workflow::begin(runtime, "spatial demo", operations,
                               {points.rows() != 0 ? points.rows() : polygons.rows(),
                                there ? kiln::Residency::Device : kiln::Residency::Host, points.backend()});
  if (!workflow) return workflow.error();
  report.decision = workflow->decision();
  if (runtime::on_device(report.decision.selected)) {
    report.warmup_ms = warm_up(runtime, operations, report.decision.selected);
  }
  start = Clock::now();
  kiln::Status status = compute(runtime, options.operation, points, polygons, keys, report);
  report.ms = ms_since(start);
  return status;
}

/// Returns a column with only the first row that has rings.
PolygonColumn first_polygon(const PolygonColumn& polygons) {
  PolygonColumn one;
  std::size_t row = 0;
  while (row < polygons.rows() && polygons.rings[row] == polygons.rings[row + 1]) ++row;
  for (std::int32_t ring = row < polygons.rows() ? polygons.rings[row] : 0;
       row < polygons.rows() && ring < polygons.rings[row + 1]; ++ring) {
    std::vector<Point> vertices;
    for (std::int32_t i = polygons.offsets[ring]; i < polygons.offsets[ring + 1]; ++i) {
      vertices.push_back({polygons.x[i], polygons.y[i]});
    }
    one.add_ring(vertices);
  }
  one.end_row();
  return one;
}

SyntheticData make_data(const DemoOptions& options) {
  SyntheticData scene = options.operation == "dissolve" ? make_coverage(options.scene) : make_scene(options.scene);
  if (options.operation == "within") scene.polygons = first_polygon(scene.polygons);
  if (options.operation == "to_wkb") scene.points = PointColumn();
  return scene;
}

}  // namespace

kiln::Result<int> demo(const DemoOptions& options) {
  DemoReport report;
  report.operation = options.operation;
  report.backend = options.backend;
  std::mutex mutex;  // guards report.compiled: units are compiled on other threads
  kiln::SessionOptions settings;
  if (!options.trace.empty()) settings.settings["trace"] = options.trace;
  settings.record_undeclared = true;
  settings.on_event = [&mutex, &report](const kiln::Event& event) {
    // Without a callback the session prints these itself.
    if (event.kind == kiln::Event::Kind::ConfigWarning) {
      std::fprintf(stderr, "spatial: warning: %s\n", event.message.c_str());
    }
    if (event.kind != kiln::Event::Kind::Compiled) return;
    const std::lock_guard lock(mutex);
    report.compiled.push_back(event.unit);
  };
  kiln::Result<kiln::Session> session = kiln::Session::open(std::move(settings));
  if (!session) return session.error();
  {
    runtime::Runtime runtime(*session, runtime_options(options.backend));
    request_units(runtime, operations_of(options.operation));
    const SyntheticData scene = make_data(options);
    report.points = scene.points.rows();
    report.polygons = scene.polygons.rows();
    if (kiln::Status status = run(runtime, options, scene, report); !status) return status.error();
  }
  report.undeclared = session->undeclared();
  if (!options.trace.empty()) {
    if (kiln::Status status = session->write_trace(); !status) return status.error();
  }
  const std::lock_guard lock(mutex);
  (options.json ? print_json : print_text)(report);
  return report.undeclared.empty() ? 0 : 1;
}

}  // namespace spatial
