// SPDX-License-Identifier: Apache-2.0
#include "analysis/audit/audit.hpp"

#include <algorithm>

#include "analysis/audit/audit_view.hpp"
#include "base/enum_names.hpp"

namespace kiln::audit {

const char* to_string(Severity severity) {
  return enum_name<Severity::Blocking>(severity, {"LOW", "MEDIUM", "HIGH", "BLOCKING"});
}

const char* to_string(Check step) {
  switch (step) {
    case Check::RanOnDevice: return "did it run on the device";
    case Check::StayedOnDevice: return "did its data stay on the device";
    case Check::NoSynchronization: return "did it avoid waits on its stream";
    case Check::NoHostBatching: return "did it avoid batches driven by the host";
    case Check::LaunchShape: return "do launches fit the hardware";
    case Check::TraceComplete: return "is the trace complete";
  }
  return "unknown";
}

const char* to_string(Verdict verdict) {
  return enum_name<Verdict::Inconclusive>(verdict, {"clean", "findings", "inconclusive"});
}

const char* to_string(ReadUse use) {
  return enum_name<ReadUse::Tracing>(use, {"terminal", "allocation_fence", "unclear", "defect", "tracing"});
}

const char* to_string(Answer answer) {
  return enum_name<Answer::NotEnoughEvidence>(answer, {"supported", "disproved", "not enough evidence"});
}

bool Report::lacks_evidence() const {
  return std::any_of(missing.begin(), missing.end(), [](const MissingEvidence& each) { return each.decisive; });
}

std::uint64_t Report::unclear_reads() const {
  std::uint64_t count = 0;
  for (const HostReads& each : reads) count += each.use == ReadUse::Unclear ? each.count : 0;
  return count;
}

Verdict Report::verdict() const {
  if (!findings.empty()) return Verdict::Findings;
  return lacks_evidence() ? Verdict::Inconclusive : Verdict::Clean;
}

Severity Report::worst() const {
  Severity worst = Severity::Low;
  for (const Finding& finding : findings) worst = std::max(worst, finding.rule->severity);
  return worst;
}

Rules all_rules() {
  Rules all;
  for (const auto rules_of : {residency_rules, synchronization_rules, launch_rules, stream_rules, buffer_rules,
                              host_copy_rules, precision_rules}) {
    for (const Rule* rule : rules_of()) all.push_back(rule);
  }
  return all;
}

Report run_audit(const Trace& trace) {
  const View view(trace);
  Findings findings(view);
  check_residency(view, findings);
  check_synchronization(view, findings);
  check_launches(view, findings);
  check_streams(view, findings);
  check_buffers(view, findings);
  check_host_copies(view, findings);
  check_precision(view, findings);
  Report report;
  find_waits(view, report);
  report.reads = findings.reads();
  report.findings = findings.take();
  fill_report(view, report);
  sum_operations(view, report);
  find_missing(view, report);
  judge_shape(report);
  summarize_cause(report);
  return report;
}

}  // namespace kiln::audit
