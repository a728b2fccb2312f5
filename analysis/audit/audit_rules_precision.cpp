// SPDX-License-Identifier: Apache-2.0
// Audit rules: a precision that does not fit the device or the kind of operation. The runtime reports both with its
// decisions and dispatches; a trace without them has no such finding.
#include <charconv>

#include "analysis/audit/audit_view.hpp"

namespace kiln::audit {
namespace {

/// A predicate, metric or coarse operation ran in fp64 on a device whose fp64 ratio is above 4, and the plan asked
/// for less.
constexpr Rule kNeedlessFp64{
    "needless_fp64",
    Check::LaunchShape,
    Severity::Medium,
    true,
    "a predicate, metric or coarse operation computes in fp64 on a device on which fp64 is slow",
    "add a variant in fp32 or mixed precision with the robustness that the operation needs; the plan selects it"};
/// A constructive operation ran on a device in less than fp64; fp64 there is policy and no finding.
constexpr Rule kConstructive{
    "constructive_not_fp64",
    Check::LaunchShape,
    Severity::High,
    true,
    "a constructive operation computes coordinates in less than fp64",
    "compute the results of constructive operations in fp64 on every device: their errors are in the output"};

constexpr double kSlowFp64 = 4;  // ratio of fp32 to fp64 throughput; up to this one fp64 costs little

double ratio_of(std::string_view text) {
  double ratio = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ratio);
  return error == std::errc() && end == text.data() + text.size() ? ratio : 0;
}

void check_precision_of(const Run& run, Findings& to) {
  // What ran, otherwise what was decided.
  const RecordedEvent* reported = run.dispatched;
  if (reported == nullptr || reported->event.detail("precision").empty()) reported = run.decided;
  if (reported == nullptr || !is_device(run.selected())) return;
  const Event& event = reported->event;
  const std::string precision(event.detail("precision"));
  if (precision.empty()) return;
  if (event.detail("precision_class") == "constructive") {
    if (precision != "fp64") to.add(kConstructive, {reported}, "it computes in " + precision);
    return;
  }
  const std::string planned(event.detail("planned_precision"));
  const bool asks_for_less = !planned.empty() && planned != "fp64";
  if (precision != "fp64" || !asks_for_less || ratio_of(event.detail("fp64_ratio")) <= kSlowFp64) return;
  to.add(kNeedlessFp64, {reported},
         "it computes in fp64, the plan asks for " + planned + ", and fp64 has 1/" +
             std::string(event.detail("fp64_ratio")) + " of the throughput of fp32 on this device");
}

}  // namespace

void check_precision(const View& view, Findings& to) {
  for (const Run& run : view.runs) check_precision_of(run, to);
}

Rules precision_rules() { return {&kNeedlessFp64, &kConstructive}; }

}  // namespace kiln::audit
