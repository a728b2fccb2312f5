#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>

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
  if (kiln::Status status = runtime.session().make_current(runtime::device_backend(backend)); !status) {
    return status.error();
  }
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
  const auto begin = [&](std::initializer_list<const runtime::Operation*> operations) {
    return runtime::Workflow::begin(runtime, "spatial demo", operations,
                                    {points.rows() != 0 ? points.rows() : polygons.rows(),
                                     there ? kiln::Residency::Device : kiln::Residency::Host, points.backend()});
  };
  start = Clock::now();
  kiln::Result<runtime::Workflow> workflow = options.operation == "within"     ? begin({&kWithin})
                                             : options.operation == "to_wkb"   ? begin({&kWkbOfPolygons})
                                             : options.operation == "dissolve" ? begin({&kDissolve, &kWkbOfPolygons})
                                                                               : begin({&kSjoin});
  if (!workflow) return workflow.error();
  report.decision = workflow->decision();
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

}  // namespace

kiln::Result<int> demo(const DemoOptions& options) {
  SyntheticData scene = options.operation == "dissolve" ? make_coverage(options.scene) : make_scene(options.scene);
  if (options.operation == "within") scene.polygons = first_polygon(scene.polygons);
  if (options.operation == "to_wkb") scene.points = PointColumn();
  DemoReport report;
  report.operation = options.operation;
  report.backend = options.backend;
  report.points = scene.points.rows();
  report.polygons = scene.polygons.rows();
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
