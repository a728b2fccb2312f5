#include <algorithm>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/compile/batch.hpp"
#include "apps/kiln/compile/unit_arguments.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/output.hpp"
#include "apps/kiln/output/render_json.hpp"
#include "base/files/files.hpp"

namespace kiln::cli {
namespace {

const char* extension_of(Form form) {
  switch (form) {
    case Form::Cubin: return ".cubin";
    case Form::Ptx: return ".ptx";
    case Form::LtoIr: return ".ltoir";
    case Form::OpenClBinary: return ".clbin";
    case Form::Cccl: return ".cccl";
    case Form::External: break;  // kiln does not compile external artifacts
  }
  return ".bin";
}

bool names_directory(const std::string& path) { return path.ends_with('/') || is_directory(path); }

// Returns a path such as `out/k.sm_80.cubin`, for a kernel of a family `out/k.entry.sm_80.cubin`. The description of an
// OpenCL device is not part of the file name.
std::string output_path(const std::string& output, const Job& job, Form form) {
  if (!names_directory(output)) return output;
  const bool of_family = !job.unit.preamble().empty();
  const std::string base = of_family         ? job.unit.name()
                           : job.file == "-" ? "stdin"
                                             : job.file.substr(job.file.rfind('/') + 1);
  std::string stem = base.substr(0, base.rfind('.'));
  if (of_family) stem += '.' + job.unit.entries().front();
  std::replace(stem.begin(), stem.end(), '/', '_');
  const std::string target = form == Form::OpenClBinary ? "" : '.' + job.target.name();
  return join_path(output, stem + target + extension_of(form));
}

Status write_outputs(const std::string& output, const std::vector<Job>& jobs, std::vector<CompileOutcome>& outcomes) {
  if (output.ends_with('/')) {
    if (Status made = make_directories(output.substr(0, output.size() - 1)); !made) return made;
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!outcomes[i].answer) continue;
    const Artifact& artifact = outcomes[i].answer->artifact;
    const std::string path = output_path(output, jobs[i], artifact.target.form);
    if (Status written = write_output(path, artifact.bytes.view()); !written) return written;
    outcomes[i].output = path;
  }
  return {};
}

void print_results(const std::vector<CompileOutcome>& outcomes, Console& console) {
  std::vector<std::vector<std::string>> rows;
  for (const CompileOutcome& outcome : outcomes) {
    if (!outcome.answer) continue;
    const ResolvedArtifact& answer = *outcome.answer;
    std::string what = answer.origin == Origin::Compiled ? "compiled" : std::string("from ") + to_string(answer.origin);
    if (answer.origin == Origin::Bundle) what += ", for " + answer.artifact.target.name();
    rows.push_back({outcome.file, outcome.target, what, format_bytes(answer.artifact.bytes.size()),
                    time_text(answer.ms), "key " + answer.key.hex().substr(0, 12),
                    outcome.output.empty() ? "" : "-> " + outcome.output});
  }
  if (!rows.empty()) console.print(table_text(rows));
}

}  // namespace

int compile_command(const Arguments& arguments, Console& console) {
  const Result<std::vector<Job>> jobs = jobs_of(arguments);
  if (!jobs) return report(jobs.error(), console);
  if (jobs->size() > 1 && !arguments.output.empty() && !names_directory(arguments.output)) {
    console.error({Code::InvalidArgument, "-o " + arguments.output + " is one file for " +
                                              std::to_string(jobs->size()) + " results; give a directory: -o " +
                                              arguments.output + "/"});
    return kUsage;
  }
  Result<Session> session = Session::open(session_options(arguments, console));
  if (!session) return report(session.error(), console);
  std::vector<CompileOutcome> outcomes = CompileBatch(*jobs, *session, console).run();
  Status written;
  if (!arguments.output.empty()) written = write_outputs(arguments.output, *jobs, outcomes);
  if (arguments.json && arguments.output != "-") {
    console.print(compile_json(outcomes));
  } else if (arguments.output != "-") {
    print_results(outcomes, console);
  }
  const int exit_code = print_errors(outcomes, console);
  if (!written) console.error(written.error());
  return exit_code != kSuccess ? exit_code : written ? kSuccess : kFailed;
}

}  // namespace kiln::cli
