// SPDX-License-Identifier: Apache-2.0
// kiln report: writes an HTML page that shows waits and their causes.
#include "analysis/report/page.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/json_common.hpp"
#include "apps/kiln/output/output.hpp"
#include "base/error.hpp"

namespace kiln::cli {

int report_command(const Arguments& arguments, Console& console) {
  std::vector<report::Source> sources;
  for (const std::string& path : arguments.files) {
    Result<audit::Trace> trace = audit::read_trace(path);
    if (!trace) return report(trace.error(), console);
    if (trace->format != audit::TraceFormat::Kiln) {
      return report(
          make_error(Code::Unsupported, path + " cannot be shown: it is not a trace of kiln and has no compiles; "
                                               "use 'kiln audit'"),
          console);
    }
    sources.push_back({path, std::move(*trace)});
  }
  const report::Model model = report::make_model(sources);
  if (arguments.json) {
    console.print(text_of(Json::parse(report::model_json(model, -1))));
    return kSuccess;
  }
  const std::string output = arguments.output.empty() ? "report.html" : arguments.output;
  const std::string page = report::page(model);
  const Status written = output == "-" ? write_output(output, page) : replace_file(output, page);
  if (!written) return report(written.error(), console);
  if (output == "-") return kSuccess;
  console.print("wrote " + printable(output) + " (" + format_bytes(page.size()) + "): open it in a browser");
  if (!model.waits.empty()) {
    const report::Wait& longest = model.waits.front();
    console.print("the longest wait was " + time_text(longest.ms) + ", by " + printable(longest.who) +
                  (longest.unit.empty() ? "" : " for " + printable(longest.unit)));
  }
  return kSuccess;
}

}  // namespace kiln::cli
