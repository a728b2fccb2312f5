// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <kiln/cccl.hpp>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/compile/batch.hpp"
#include "apps/kiln/compile/unit_arguments.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/output.hpp"
#include "apps/kiln/output/render_json.hpp"
#include "base/error.hpp"
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

// The values of --format that are not kiln's own form.
constexpr const char* kLibraryFormat = "cccl";
constexpr const char* kComputeFormat = "cuda.compute";

bool names_directory(const std::string& path) { return path.ends_with('/') || is_directory(path); }

// Returns a path such as `out/k.sm_80.cubin`, where `suffix` is `.sm_80.cubin`; for a kernel of a family
// `out/k.entry.sm_80.cubin`.
std::string output_path(const std::string& output, const Job& job, const std::string& suffix) {
  if (!names_directory(output)) return output;
  const bool of_family = !job.unit.preamble().empty();
  const std::string base = of_family         ? job.unit.name()
                           : job.file == "-" ? "stdin"
                                             : job.file.substr(job.file.rfind('/') + 1);
  std::string stem = base.substr(0, base.rfind('.'));
  if (of_family) stem += '.' + job.unit.entries().front();
  std::replace(stem.begin(), stem.end(), '/', '_');
  return join_path(output, stem + suffix);
}

Status write_output_of(const Arguments& arguments, const Job& job, CompileOutcome& outcome) {
  if (!outcome.answer) return {};
  const Artifact& artifact = outcome.answer->artifact;
  const bool as_library = arguments.format == kLibraryFormat;
  const Result<Bytes> bytes = as_library ? cccl::library_bytes(artifact) : artifact.bytes;
  if (!bytes) return bytes.error();
  const Form form = artifact.target.form;
  // The description of an OpenCL device is not part of the file name.
  const std::string target = form == Form::OpenClBinary ? "" : '.' + job.target.name();
  const std::string suffix = target + (as_library ? ".blob" : extension_of(form));
  const std::string path = output_path(arguments.output, job, suffix);
  if (Status written = write_output(path, bytes->view()); !written) return written;
  outcome.output = path;
  return {};
}

// Writes one file for each unit, with the code for all of its targets. Skips a unit that failed for one of them.
Status write_compute_outputs(const std::string& output, const std::vector<Job>& jobs,
                             std::vector<CompileOutcome>& outcomes) {
  for (std::size_t first = 0; first < jobs.size(); ++first) {
    std::vector<std::size_t> alike;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (jobs[i].unit.key() == jobs[first].unit.key()) alike.push_back(i);
    }
    const bool failed = std::any_of(alike.begin(), alike.end(), [&](std::size_t i) { return !outcomes[i].answer; });
    if (alike.front() != first || failed) continue;
    std::vector<Artifact> artifacts;
    for (const std::size_t i : alike) artifacts.push_back(outcomes[i].answer->artifact);
    const Result<Bytes> bytes = cccl::cuda_compute_bytes(artifacts);
    if (!bytes) return bytes.error();
    const std::string path = output_path(output, jobs[first], ".compute");
    if (Status written = write_output(path, bytes->view()); !written) return written;
    for (const std::size_t i : alike) outcomes[i].output = path;
  }
  return {};
}

Status make_output_directory(const std::string& output) {
  return output.ends_with('/') ? make_directories(output.substr(0, output.size() - 1)) : Status();
}

// Returns an error if -o and --format do not fit the jobs.
Status check_output(const Arguments& arguments, const std::vector<Job>& jobs) {
  const bool cccl_only =
      std::all_of(jobs.begin(), jobs.end(), [](const Job& job) { return job.unit.kind() == std::string("cccl"); });
  if (!arguments.format.empty() && (!cccl_only || arguments.output.empty())) {
    return make_error(Code::InvalidArgument,
                      "--format " + arguments.format + " writes CCCL algorithms only; use it with --cccl and -o");
  }
  const bool one_unit =
      std::all_of(jobs.begin(), jobs.end(), [&](const Job& job) { return job.unit.key() == jobs.front().unit.key(); });
  const bool one_file = jobs.size() == 1 || (arguments.format == kComputeFormat && one_unit);
  if (one_file || arguments.output.empty() || names_directory(arguments.output)) return {};
  return make_error(Code::InvalidArgument, "-o " + arguments.output + " is one file for " +
                                               std::to_string(jobs.size()) + " results; give a directory: -o " +
                                               arguments.output + "/");
}

}  // namespace

int compile_command(const Arguments& arguments, Console& console) {
  const Result<std::vector<Job>> jobs = jobs_of(arguments);
  if (!jobs) return report(jobs.error(), console);
  if (Status fits = check_output(arguments, *jobs); !fits) {
    console.error(fits.error());
    return kUsage;
  }
  Result<Session> session = Session::open(session_options(arguments, console));
  if (!session) return report(session.error(), console);
  const bool in_lines = !arguments.json && arguments.output != "-";
  const FinishedJob print = in_lines ? print_finished(*jobs, console) : [](std::size_t, CompileOutcome&) {};
  // A file for cuda.compute has the code for all targets of a unit, so it is written at the end.
  const bool at_once = arguments.format != kComputeFormat;
  Status written = make_output_directory(arguments.output);
  std::vector<CompileOutcome> outcomes =
      CompileBatch(*jobs, *session, console).run([&](std::size_t job, CompileOutcome& outcome) {
        if (!at_once) return;
        if (written && !arguments.output.empty()) written = write_output_of(arguments, (*jobs)[job], outcome);
        print(job, outcome);
      });
  if (!at_once && written) written = write_compute_outputs(arguments.output, *jobs, outcomes);
  for (std::size_t i = 0; !at_once && i < outcomes.size(); ++i) print(i, outcomes[i]);
  if (arguments.json && arguments.output != "-") console.print(compile_json(outcomes));
  const int exit_code = print_errors(outcomes, console);
  if (!written) console.error(written.error());
  return exit_code != kSuccess ? exit_code : written ? kSuccess : kFailed;
}

}  // namespace kiln::cli
