// SPDX-License-Identifier: Apache-2.0
// kiln audit --source: searches sources for what makes GPU code behave like CPU code.
#include "apps/kiln/analysis/audit_source.hpp"

#include <algorithm>

#include "analysis/source/source_join.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/json_common.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"

namespace kiln::cli {
namespace {

constexpr std::size_t kMaxPrinted = 50;  // hits in the text; the JSON has all that were kept

std::string finding_text(const audit::Finding& finding) {
  return std::string(to_string(finding.rule->severity)) + ' ' + finding.rule->name +
         (finding.operation.empty() ? "" : " of " + printable(finding.operation));
}

std::string where_text(const source::Hit& hit) {
  const std::string function = hit.function.empty() ? "outside of functions" : "in " + printable(hit.function);
  return function + ", loop depth " + std::to_string(hit.loops);
}

void print_hit(const source::Hit& hit, const audit::Report* report, Console& console) {
  Text text = console.bold(printable(hit.file) + ':' + std::to_string(hit.line)) + "  " + to_string(hit.rail) + "  " +
              where_text(hit) + "\n  " + printable(hit.text) + '\n';
  for (const source::JoinedFinding& each : hit.findings) {
    text += "  at " + finding_text(report->findings[each.finding]) + ": " + printable(each.reason) + '\n';
  }
  console.print(text);
}

// Returns what the search did not look at: `2 binary files, 1 symbolic link`.
std::string skipped_text(const source::SourceReport& sources) {
  std::vector<std::string> parts;
  const auto add = [&](std::uint64_t count, const char* one, const char* several) {
    if (count != 0) parts.push_back(format_count(count, one, several));
  };
  add(sources.ignored, "ignored directory (.git, build, …)", "ignored directories (.git, build, …)");
  add(sources.links, "symbolic link", "symbolic links");
  add(sources.binary, "binary file", "binary files");
  add(sources.too_large, "file that is too large", "files that are too large");
  add(sources.unreadable, "unreadable entry", "unreadable entries");
  return join_strings(parts);
}

std::string counts_text(const source::SourceReport& sources) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < source::kRails; ++i) {
    const auto rail = static_cast<source::Rail>(i);
    const auto count = std::count_if(sources.hits.begin(), sources.hits.end(),
                                     [&](const source::Hit& hit) { return hit.rail == rail; });
    if (count != 0) parts.push_back(std::string(to_string(rail)) + ' ' + std::to_string(count));
  }
  return join_strings(parts);
}

}  // namespace

Result<source::SourceReport> search_sources(const std::string& directory, const audit::Trace* trace,
                                            const audit::Report* report) {
  if (trace == nullptr || report == nullptr) {
    return source::search_directory(directory, {}, {}, system_clock());
  }
  const source::TraceJoin join(*trace, *report);
  Result<source::SourceReport> found = source::search_directory(directory, join.names(), {}, system_clock());
  if (found) join.apply(*found);
  return found;
}

void print_sources(const source::SourceReport& sources, const audit::Report* report, Console& console) {
  for (std::size_t i = 0; i < std::min(sources.hits.size(), kMaxPrinted); ++i) {
    print_hit(sources.hits[i], report, console);
  }
  if (sources.hits.size() > kMaxPrinted) {
    console.print("… and " + std::to_string(sources.hits.size() + sources.dropped - kMaxPrinted) +
                  " more; --json has " +
                  (sources.dropped == 0 ? "all" : "the first " + std::to_string(sources.hits.size())) + '\n');
  }
  const auto joined = std::count_if(sources.hits.begin(), sources.hits.end(),
                                    [](const source::Hit& hit) { return !hit.findings.empty(); });
  const std::string rails = counts_text(sources);
  std::string text = (sources.hits.empty() ? "" : "\n") +
                     format_count(sources.hits.size() + sources.dropped, "suspicion", "suspicions") + " in " +
                     format_count(sources.files, "source", "sources") + " below " + printable(sources.directory) +
                     (rails.empty() ? "" : ": " + rails) + '\n';
  if (report != nullptr)
    text += format_count(static_cast<std::uint64_t>(joined), "is", "are") + " at the place of a finding\n";
  if (sources.suppressed != 0)
    text += format_count(sources.suppressed, "is", "are") + " suppressed by kiln-audit: ignore\n";
  if (const std::string skipped = skipped_text(sources); !skipped.empty()) text += "not searched: " + skipped + '\n';
  if (!sources.stopped.empty()) text += "the search is incomplete: it reached " + sources.stopped + '\n';
  console.print(text +
                "A suspicion is no finding and does not change the exit code; a trace shows what happens at run time.");
}

Json source_json(const source::SourceReport& sources, const audit::Report* report) {
  Json hits = Json::array();
  for (const source::Hit& hit : sources.hits) {
    Json findings = Json::array();
    for (const source::JoinedFinding& each : hit.findings) {
      const audit::Finding& finding = report->findings[each.finding];
      findings.push_back({{"finding", each.finding},
                          {"rule", finding.rule->name},
                          {"severity", to_string(finding.rule->severity)},
                          {"operation", finding.operation},
                          {"reason", printable(each.reason)}});
    }
    hits.push_back({{"file", printable(hit.file)},
                    {"line", hit.line},
                    {"rail", to_string(hit.rail)},
                    {"function", printable(hit.function)},
                    {"loop_depth", hit.loops},
                    {"text", printable(hit.text)},
                    {"findings", std::move(findings)}});
  }
  return {{"directory", printable(sources.directory)},
          {"files", sources.files},
          {"hits", std::move(hits)},
          {"dropped", sources.dropped},
          {"suppressed", sources.suppressed},
          {"skipped",
           {{"ignored_directories", sources.ignored},
            {"links", sources.links},
            {"binary", sources.binary},
            {"too_large", sources.too_large},
            {"unreadable", sources.unreadable}}},
          {"stopped", sources.stopped.empty() ? Json(nullptr) : Json(sources.stopped)}};
}

int audit_source_command(const Arguments& arguments, Console& console) {
  if (arguments.source.empty()) {
    return report(make_error(Code::InvalidArgument,
                             "nothing to audit: no trace is named; name a trace, or sources with --source"),
                  console);
  }
  const Result<source::SourceReport> found = search_sources(arguments.source, nullptr, nullptr);
  if (!found) return report(found.error(), console);
  if (arguments.json) {
    console.print(text_of({{"source", source_json(*found, nullptr)}}));
  } else {
    print_sources(*found, nullptr, console);
  }
  return kSuccess;
}

}  // namespace kiln::cli
