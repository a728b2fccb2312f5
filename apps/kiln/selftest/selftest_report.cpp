// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/selftest/selftest_report.hpp"

#include <algorithm>

#include "analysis/report/markup.hpp"
#include "apps/kiln/output/json_common.hpp"

namespace kiln::cli::selftest {
namespace {

constexpr const char* kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1000px;margin:32px auto;padding:0 20px;color:#1d2126}"
    "h1{margin-bottom:0}table{border-collapse:collapse;width:100%;margin:8px 0 24px}"
    "th,td{text-align:left;padding:4px 12px 4px 0;border-bottom:1px solid #e0ddd6;vertical-align:top}"
    ".passed{color:#23804d}.failed{color:#c43c22;font-weight:700}.skipped{color:#6e7279}"
    "code,pre{font:13px/1.4 ui-monospace,monospace;overflow-wrap:anywhere;white-space:pre-wrap}";

// Names and messages of drivers are text: nothing in them is HTML.
std::string escaped(const std::string& text) { return report::escape_markup(text, report::kHtmlEscapes); }

std::string table_row(const std::vector<std::string>& cells, const char* tag) {
  std::string row = "<tr>";
  for (const std::string& cell : cells) row += std::string("<") + tag + ">" + cell + "</" + tag + ">";
  return row + "</tr>\n";
}

std::string check_rows(const BackendOutcome& backend) {
  std::string rows = table_row({"check", "what", "result", "time", "details"}, "th");
  for (const Outcome& check : backend.checks) {
    const std::string state = to_string(check.state);
    rows += table_row({"<code>" + escaped(check.name) + "</code>", escaped(check.description),
                       "<span class=\"" + state + "\">" + state + "</span>",
                       check.state == Outcome::State::Skipped ? "" : time_text(check.ms),
                       escaped(check.text) + (check.log.empty() ? "" : "<pre>" + escaped(check.log) + "</pre>")},
                      "td");
  }
  return rows;
}

std::string backend_section(const BackendOutcome& backend, const SelftestReport& report) {
  std::string html = "<h2>" + escaped(backend.backend) + "</h2>\n<p>" + escaped(evidence_of(backend)) + "</p>\n";
  if (!backend.absent.empty()) return html;
  if (backend.failed_to_describe()) return html + "<table>" + check_rows(backend) + "</table>\n";
  html += "<table>" + table_row({"device", "target", "multiprocessors", "memory"}, "th");
  for (const TestedDevice& device : backend.devices) {
    html += table_row({escaped(device.name) + (device.cpu ? " (a CPU)" : ""), escaped(device.target),
                       std::to_string(device.units), escaped(device.memory)},
                      "td");
  }
  return html + "</table>\n<table>" + check_rows(backend) + "</table>\n<p>Row for the support matrix:</p>\n<pre>" +
         escaped(backend.matrix_row(report.kiln, report.date)) + "</pre>\n";
}

Json to_json(const Outcome& check) {
  Json object{{"name", check.name},
              {"description", check.description},
              {"state", to_string(check.state)},
              {"ms", rounded(check.ms)},
              {"text", check.text}};
  if (!check.log.empty()) object["log"] = check.log;
  return object;
}

Json to_json(const TestedDevice& device) {
  return {{"name", device.name},
          {"target", device.target},
          {"units", device.units},
          {"memory", device.memory},
          {"cpu", device.cpu}};
}

Json to_json(const BackendOutcome& backend, const SelftestReport& report) {
  Json devices = Json::array();
  for (const TestedDevice& device : backend.devices) devices.push_back(to_json(device));
  Json checks = Json::array();
  for (const Outcome& check : backend.checks) checks.push_back(to_json(check));
  const bool tested = backend.absent.empty();
  return {{"backend", backend.backend},
          {"tested", tested},
          {"evidence", evidence_of(backend)},
          {"driver", backend.driver},
          {"driver_replaced", backend.driver_replaced},
          {"executed", tested && backend.executed},
          {"devices", std::move(devices)},
          {"checks", std::move(checks)},
          {"support_matrix_row",
           backend.devices.empty() ? Json(nullptr) : Json(backend.matrix_row(report.kiln, report.date))}};
}

std::size_t count_in(const BackendOutcome& backend, Outcome::State state) {
  return static_cast<std::size_t>(std::count_if(backend.checks.begin(), backend.checks.end(),
                                                [&](const Outcome& check) { return check.state == state; }));
}

}  // namespace

const char* to_string(Outcome::State state) {
  switch (state) {
    case Outcome::State::Passed: return "passed";
    case Outcome::State::Failed: return "failed";
    case Outcome::State::Skipped: return "skipped";
  }
  return "";
}

std::string BackendOutcome::matrix_row(const std::string& kiln, const std::string& date) const {
  const std::string compiler = checks.empty() ? "" : checks.front().text.substr(0, checks.front().text.find(", "));
  const std::string name = devices.empty() ? "" : devices.front().name + " (" + devices.front().target + ")";
  const std::string shown = std::to_string(count_in(*this, Outcome::State::Passed)) + " passed, " +
                            std::to_string(count_in(*this, Outcome::State::Failed)) + " failed, " +
                            std::to_string(count_in(*this, Outcome::State::Skipped)) + " skipped" +
                            (executed ? "" : "; nothing executed");
  std::string row = "| " + name + " | " + driver + " | " + compiler + " | " + kiln + " | " + date.substr(0, 10) +
                    " | " + shown + " |";
  std::replace(row.begin(), row.end(), '\n', ' ');
  return row;
}

std::size_t SelftestReport::count(Outcome::State state) const {
  std::size_t all = 0;
  for (const BackendOutcome& backend : backends) all += count_in(backend, state);
  return all;
}

bool SelftestReport::tested() const {
  return std::any_of(backends.begin(), backends.end(), [](const BackendOutcome& each) { return each.absent.empty(); });
}

std::string evidence_of(const BackendOutcome& backend) {
  if (!backend.absent.empty()) return "Not tested: " + backend.absent;
  if (backend.failed_to_describe()) return "Nothing was executed: the driver crashed or did not answer.";
  if (!backend.executed) {
    return "Host calls only: the library of the setting 'driver' accepts launches and runs nothing. This says nothing "
           "about a GPU.";
  }
  const bool cpu = !backend.devices.empty() && backend.devices.front().cpu;
  return cpu ? "Device code was executed, on a CPU device." : "Device code was executed, on a GPU.";
}

std::string selftest_json(const SelftestReport& report) {
  Json about = Json::object();
  for (const auto& [name, value] : report.system) about[name] = value;
  Json backends = Json::array();
  for (const BackendOutcome& backend : report.backends) backends.push_back(to_json(backend, report));
  return text_of({{"schema_version", 1},
                  {"kind", "kiln-selftest"},
                  {"kiln", report.kiln},
                  {"date", report.date},
                  {"quick", report.quick},
                  {"seconds", rounded(report.seconds)},
                  {"passed", report.count(Outcome::State::Passed)},
                  {"failed", report.count(Outcome::State::Failed)},
                  {"skipped", report.count(Outcome::State::Skipped)},
                  {"system", std::move(about)},
                  {"backends", std::move(backends)}});
}

std::string selftest_page(const SelftestReport& report) {
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>kiln "
      "selftest</title>\n<style>" +
      std::string(kStyle) + "</style></head><body>\n<h1>kiln selftest</h1>\n";
  html += "<p>kiln " + escaped(report.kiln) + ", " + escaped(report.date) + ": " +
          std::to_string(report.count(Outcome::State::Passed)) + " passed, " +
          std::to_string(report.count(Outcome::State::Failed)) + " failed, " +
          std::to_string(report.count(Outcome::State::Skipped)) + " skipped" + (report.quick ? " (with --quick)" : "") +
          "</p>\n<table>";
  for (const auto& [name, value] : report.system) html += table_row({escaped(name), escaped(value)}, "td");
  html += "</table>\n";
  for (const BackendOutcome& backend : report.backends) html += backend_section(backend, report);
  return html + "</body></html>\n";
}

}  // namespace kiln::cli::selftest
