#include <unistd.h>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/doctor_report.hpp"
#include "apps/kiln/examine.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/progress.hpp"
#include "apps/kiln/render_json.hpp"
#include "session/config.hpp"

namespace kiln::cli {
namespace {

DoctorReport examine(Console& console) {
  // Warnings become findings here, so nothing is printed as it is heard.
  std::vector<std::string> warnings;
  const Observer observer([&](const Event& event) { warnings.push_back(event.message); });
  const Config config = Config::load({}, observer);
  DoctorReport report;
  bool cuda = false;
  bool opencl = false;
  Progress progress(console, {"looking", {}});
  progress.at("compilers");
  report.findings.push_back(examine_nvrtc(config, cuda));
  report.findings.push_back(examine_driver());
  report.findings.push_back(examine_cccl(config));
  progress.at("OpenCL's devices");
  report.findings.push_back(examine_opencl(opencl));
  report.findings.push_back(examine_worker(config));
  report.findings.push_back(examine_headers(config));
  progress.at("the cache");
  for (std::size_t i = 0; i < config.cache_path.size(); ++i) report.findings.push_back(examine_cache(config, i));
  report.findings.push_back(examine_bundles(config));
  progress.at("servers");
  report.findings.push_back(examine_remote(config));
  report.findings.push_back(examine_lease(config));
  report.findings.push_back(examine_configuration(config, warnings));
  report.useful = cuda || opencl;
  return report;
}

void print_finding(const Finding& finding, Console& console) {
  std::string mark = console.green("ok     ");
  if (finding.state == Finding::State::Note) mark = console.yellow("note   ");
  if (finding.state == Finding::State::Problem) mark = console.red("problem");
  std::string text = mark + "  " + console.bold(finding.about) + ": " + finding.text + '\n';
  if (!finding.details.empty()) text += table_text(finding.details, "           ");
  if (!finding.advice.empty()) text += "         > " + finding.advice + '\n';
  console.print(text);
}

}  // namespace

int doctor_command(const Arguments& arguments, Console& console) {
  const DoctorReport report = examine(console);
  if (arguments.json) {
    console.print(doctor_json(report));
  } else {
    for (const Finding& finding : report.findings) print_finding(finding, console);
    console.print(report.useful ? "kiln can work here."
                                : "kiln can compile nothing here: it has neither an NVRTC nor an OpenCL device.");
  }
  return report.useful ? kDone : kUnavailable;
}

}  // namespace kiln::cli
