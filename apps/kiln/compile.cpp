#include "apps/kiln/batch.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output.hpp"
#include "apps/kiln/render_json.hpp"
#include "apps/kiln/unit_arguments.hpp"
#include "base/files.hpp"

namespace kiln::cli {
namespace {

const char* extension_of(Form form) {
  switch (form) {
    case Form::Cubin: return ".cubin";
    case Form::Ptx: return ".ptx";
    case Form::LtoIr: return ".ltoir";
    case Form::OpenClBinary: return ".clbin";
    case Form::Cccl: return ".cccl";
    case Form::Foreign: break;  // is not compiled here
  }
  return ".bin";
}

bool names_folder(const std::string& path) { return path.ends_with('/') || is_folder(path); }

// `out/k.sm_80.cubin`; an OpenCL device's description is no part of a file name.
std::string output_path(const std::string& output, const Job& job, Form form) {
  if (!names_folder(output)) return output;
  const std::string base = job.file == "-" ? "stdin" : job.file.substr(job.file.rfind('/') + 1);
  const std::string stem = base.substr(0, base.rfind('.'));
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
    const Answer& answer = *outcome.answer;
    std::string what = answer.origin == Origin::Compiled ? "compiled" : std::string("from ") + to_string(answer.origin);
    if (answer.origin == Origin::Bundle) what += ", for " + answer.artifact.target.name();
    rows.push_back({outcome.file, outcome.target, what, size_text(answer.artifact.bytes.size()), time_text(answer.ms),
                    "key " + answer.key.hex().substr(0, 12), outcome.output.empty() ? "" : "-> " + outcome.output});
  }
  if (!rows.empty()) console.print(table_text(rows));
}

}  // namespace

int compile_command(const Arguments& arguments, Console& console) {
  const Observer observer(console.listener());
  Toolbox toolbox(Config::load({}, observer), observer);
  const Result<std::vector<Job>> jobs = jobs_of(arguments);
  if (!jobs) return report(jobs.error(), console);
  if (jobs->size() > 1 && !arguments.output.empty() && !names_folder(arguments.output)) {
    console.error({Code::InvalidArgument, "-o " + arguments.output + " is one file for " +
                                              std::to_string(jobs->size()) + " results; give a folder: -o " +
                                              arguments.output + "/"});
    return kUsage;
  }
  std::vector<CompileOutcome> outcomes = Batch(*jobs, toolbox, console).run(arguments.jobs);
  Status written;
  if (!arguments.output.empty()) written = write_outputs(arguments.output, *jobs, outcomes);
  if (arguments.json && arguments.output != "-") {
    console.print(compile_json(outcomes));
  } else if (arguments.output != "-") {
    print_results(outcomes, console);
  }
  const int exit_code = print_errors(outcomes, console);
  if (!written) console.error(written.error());
  return exit_code != kDone ? exit_code : written ? kDone : kFailed;
}

}  // namespace kiln::cli
