// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <algorithm>
#include <cstdio>

namespace semiring {

namespace {

const char* to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::Right: return "right";
    case Outcome::Wrong: return "wrong";
    case Outcome::Untouched: return "not executed";
  }
  return "";
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    result += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
  }
  return result + "\"";
}

}  // namespace

std::size_t Report::count(Outcome outcome) const {
  return static_cast<std::size_t>(
      std::count_if(kernels.begin(), kernels.end(), [=](const auto& kernel) { return kernel.second == outcome; }));
}

bool Report::good() const {
  const bool excused = !executed() && backend == "cuda";
  return (excused || count(Outcome::Right) == kernels.size()) && undeclared.empty();
}

void print_json(const Report& report) {
  std::printf("{\n  \"backend\": %s,\n  \"device\": %s,\n  \"executed\": %s,\n", quoted(report.backend).c_str(),
              quoted(report.device).c_str(), report.executed() ? "true" : "false");
  std::printf("  \"available\": %zu,\n  \"not_requested\": %zu,\n", report.available, report.not_requested());
  std::printf(
      "  \"requested\": %zu,\n  \"compiled\": %zu,\n  \"cached\": %zu,\n  \"pending\": %zu,\n  \"failed\": %zu,\n",
      report.status.submitted, report.status.compiled, report.status.cached, report.status.pending,
      report.status.failed);
  std::printf("  \"startup_ms\": %.3f,\n  \"warmup_ms\": %.3f,\n", report.startup_ms, report.warmup_ms);
  std::printf("  \"first_result_ms\": %.3f,\n  \"total_ms\": %.3f,\n", report.first_result_ms, report.total_ms);
  std::printf("  \"threads\": %zu,\n  \"checked\": %zu,\n  \"wrong\": %zu,\n  \"kernels\": {", report.threads,
              report.count(Outcome::Right), report.count(Outcome::Wrong));
  const char* comma = "";
  for (const auto& [name, outcome] : report.kernels) {
    std::printf("%s\n    %s: \"%s\"", comma, quoted(name).c_str(), to_string(outcome));
    comma = ",";
  }
  std::printf("\n  },\n  \"undeclared\": [");
  comma = "";
  for (const kiln::UndeclaredUse& use : report.undeclared) {
    std::printf("%s\n    {\"unit\": %s, \"entry\": %s, \"caller\": %s}", comma, quoted(use.unit).c_str(),
                quoted(use.entry).c_str(), quoted(use.caller).c_str());
    comma = ",";
  }
  std::printf("%s]\n}\n", report.undeclared.empty() ? "" : "\n  ");
}

void print_table(const Report& report) {
  std::printf("%s, %s\n", report.backend.c_str(), report.device.c_str());
  std::printf("start-up %.2f ms, warm-up %.1f ms, first result after %.1f ms, all after %.1f ms\n", report.startup_ms,
              report.warmup_ms, report.first_result_ms, report.total_ms);
  std::printf("%zu compiled, %zu cached, %zu failed; %zu of the library's %zu kernels not requested; %zu threads\n",
              report.status.compiled, report.status.cached, report.status.failed, report.not_requested(),
              report.available, report.threads);
  for (const auto& [name, outcome] : report.kernels) std::printf("  %-24s %s\n", name.c_str(), to_string(outcome));
  std::printf("%zu of %zu right\n", report.count(Outcome::Right), report.kernels.size());
}

}  // namespace semiring
