#include "runtime/audit.hpp"

#include <algorithm>

#include "base/named.hpp"
#include "runtime/audit_view.hpp"

namespace kiln::audit {

const char* to_string(Severity severity) {
  return name_of<Severity::Blocking>(severity, {"LOW", "MEDIUM", "HIGH", "BLOCKING"});
}

const char* to_string(Step step) {
  switch (step) {
    case Step::RanOnDevice: return "did it run on the device";
    case Step::StayedThere: return "did it stay there";
    case Step::NoSynchronisation: return "did it avoid waits on its stream";
    case Step::NoHostBatching: return "did it avoid batches that the host drives";
    case Step::LaunchesFit: return "are launches right for the hardware";
    case Step::EvidenceIsReal: return "does the evidence show the real path";
  }
  return "unknown";
}

Severity Report::worst() const {
  Severity worst = Severity::Low;
  for (const Finding& finding : findings) worst = std::max(worst, finding.rule->severity);
  return worst;
}

Report examine(const Trace& trace) {
  const View view(trace);
  Findings findings(view);
  check_place(view, findings);
  check_flow(view, findings);
  check_launches(view, findings);
  Report report;
  report.findings = findings.take();
  describe(view, report);
  answer(report);
  return report;
}

}  // namespace kiln::audit
