// SPDX-License-Identifier: Apache-2.0
#include "spatial/demo_report.hpp"

#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace spatial {
namespace {

std::string hex(std::uint64_t digest) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, digest);
  return text;
}

}  // namespace

void print_text(const DemoReport& report) {
  std::printf("%s of %zu points and %zu polygons: %zu %s, digest %s\n", report.operation.c_str(), report.points,
              report.polygons, report.count, report.counted.c_str(), hex(report.digest).c_str());
  const kiln::runtime::Decision& decision = report.decision;
  const std::string device =
      decision.device.empty() ? "" : " (" + decision.device + (decision.cpu_device ? ", a CPU device)" : ")");
  std::printf("requested %s, selected %s%s: %s\n", to_string(decision.requested), to_string(decision.selected),
              device.c_str(), decision.explanation.c_str());
  std::printf("%.1f ms", report.ms);
  if (report.upload_ms > 0) std::printf(", after %.1f ms to bring the columns to the device", report.upload_ms);
  if (report.warmup_ms > 0) std::printf(", warm-up %.1f ms", report.warmup_ms);
  std::printf("; units compiled: %zu\n", report.compiled.size());
  for (const kiln::UndeclaredUse& use : report.undeclared) {
    std::fprintf(stderr, "spatial: %s uses %s of %s, which is not declared in any Requirements\n", use.caller.c_str(),
                 use.entry.c_str(), use.unit.c_str());
  }
}

void print_json(const DemoReport& report) {
  nlohmann::ordered_json json;
  json["operation"] = report.operation;
  json["points"] = report.points;
  json["polygons"] = report.polygons;
  json[report.counted] = report.count;
  json["digest"] = hex(report.digest);
  json["backend"] = report.backend;
  json["requested"] = to_string(report.decision.requested);
  json["selected"] = to_string(report.decision.selected);
  json["device"] = report.decision.device;
  json["cpu_device"] = report.decision.cpu_device;
  json["reason"] = to_string(report.decision.reason);
  json["text"] = report.decision.explanation;
  json["upload_ms"] = report.upload_ms;
  json["warmup_ms"] = report.warmup_ms;
  json["ms"] = report.ms;
  json["compiled"] = report.compiled;
  json["undeclared"] = nlohmann::ordered_json::array();
  for (const kiln::UndeclaredUse& use : report.undeclared) json["undeclared"].push_back(use.unit + " " + use.entry);
  std::printf("%s\n", json.dump(2).c_str());
}

}  // namespace spatial
