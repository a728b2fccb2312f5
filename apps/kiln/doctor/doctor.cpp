// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/doctor/doctor_checks.hpp"
#include "apps/kiln/doctor/doctor_report.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/progress.hpp"
#include "apps/kiln/output/render_json.hpp"
#include "runtime/settings/variable_values.hpp"
#include "session/config/config.hpp"

namespace kiln::cli {
namespace {

DoctorReport run_checks(Console& console) {
  // Warnings are collected for the findings and not printed immediately.
  std::vector<std::string> warnings;
  const EventEmitter emitter([&](const Event& event) { warnings.push_back(event.message); });
  const Config config = Config::load({}, emitter);
  for (std::string& warning : runtime::VariableValues::read().warnings) warnings.push_back(std::move(warning));
  DoctorReport report;
  bool cuda = false;
  bool opencl = false;
  Progress progress(console, {"looking", {}});
  progress.at("compilers");
  report.findings.push_back(check_nvrtc(config, cuda));
  report.findings.push_back(check_driver());
  report.findings.push_back(check_cccl(config));
  progress.at("OpenCL devices");
  report.findings.push_back(check_opencl(opencl));
  report.findings.push_back(check_worker(config));
  report.findings.push_back(check_headers(config));
  report.findings.push_back(check_bundled_headers(config));
  progress.at("the cache");
  for (std::size_t i = 0; i < config.cache_path.size(); ++i) report.findings.push_back(check_cache(config, i));
  report.findings.push_back(check_bundles(config));
  progress.at("servers");
  report.findings.push_back(check_remote(config));
  report.findings.push_back(check_lease(config));
  report.findings.push_back(check_configuration(config, warnings));
  report.cuda = cuda;
  report.opencl = opencl;
  return report;
}

void print_finding(const DoctorCheck& finding, Console& console) {
  Text mark = console.green("ok     ");
  if (finding.state == DoctorCheck::State::Info) mark = console.yellow("info   ");
  if (finding.state == DoctorCheck::State::Problem) mark = console.red("problem");
  Text text = mark + "  " + console.bold(finding.check) + ": " + finding.text + '\n';
  if (!finding.details.empty()) text += table_text(finding.details, "           ");
  if (!finding.advice.empty()) text += "         > " + finding.advice + '\n';
  console.print(text);
}

const char* conclusion_of(const DoctorReport& report) {
  if (report.cuda) {
    return report.opencl ? "kiln can compile CUDA C++ and OpenCL C on this machine."
                         : "kiln can compile CUDA C++ on this machine.";
  }
  return report.opencl ? "kiln can compile OpenCL C on this machine, but not CUDA C++: see NVRTC above."
                       : "kiln cannot compile on this machine: it has neither NVRTC nor an OpenCL device.";
}

}  // namespace

int doctor_command(const Arguments& arguments, Console& console) {
  const DoctorReport report = run_checks(console);
  if (arguments.json) {
    console.print(doctor_json(report));
  } else {
    for (const DoctorCheck& finding : report.findings) print_finding(finding, console);
    console.print(conclusion_of(report));
  }
  return report.usable() ? kSuccess : kUnavailable;
}

}  // namespace kiln::cli
