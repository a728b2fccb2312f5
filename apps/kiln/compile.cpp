#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <thread>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/render_json.hpp"
#include "apps/kiln/unit_arguments.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "session/toolbox.hpp"

namespace kiln::cli {
namespace {

const char* extension_of(Form form) {
  switch (form) {
    case Form::Cubin: return ".cubin";
    case Form::Ptx: return ".ptx";
    case Form::LtoIr: return ".ltoir";
    case Form::OpenClBinary: return ".clbin";
    case Form::Cccl: return ".cccl";
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

Status write_file(const std::string& path, std::string_view bytes) {
  if (path == "-") return write_all(STDOUT_FILENO, bytes, "standard output");
  const Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd) return io_failure("cannot write", path, errno);
  return write_all(fd.get(), bytes, path);
}

// Runs the jobs on a few threads and shows how far it is.
class Batch {
 public:
  Batch(const std::vector<Job>& jobs, Toolbox& toolbox, Console& console)
      : jobs_(jobs), toolbox_(toolbox), console_(console), outcomes_(jobs.size()) {}

  std::vector<CompileOutcome> run(unsigned threads) {
    std::vector<std::thread> helpers;
    for (unsigned i = 1; i < threads; ++i) helpers.emplace_back([this] { work(); });
    work();
    for (std::thread& helper : helpers) helper.join();
    console_.progress({});
    return std::move(outcomes_);
  }

 private:
  void work() {
    for (std::size_t i = next_++; i < jobs_.size(); i = next_++) {
      const Job& job = jobs_[i];
      console_.progress("kiln: " + job.file + " for " + job.target.name() + " (" + std::to_string(done_.load()) +
                        " of " + std::to_string(jobs_.size()) + " done)");
      outcomes_[i] = {job.file, job.target.name(), toolbox_.get(job.unit, job.target, company(i)), {}};
      ++done_;
    }
  }

  // How many of its kind come after a job.
  std::size_t company(std::size_t index) const {
    const auto is_like = [&](const Job& other) {
      return other.unit.kind() == jobs_[index].unit.kind() && other.target == jobs_[index].target;
    };
    return static_cast<std::size_t>(
        std::count_if(jobs_.begin() + static_cast<std::ptrdiff_t>(index) + 1, jobs_.end(), is_like));
  }

  const std::vector<Job>& jobs_;
  Toolbox& toolbox_;
  Console& console_;
  std::vector<CompileOutcome> outcomes_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> done_{0};
};

Status write_outputs(const std::string& output, const std::vector<Job>& jobs, std::vector<CompileOutcome>& outcomes) {
  if (output.ends_with('/')) {
    if (Status made = make_directories(output.substr(0, output.size() - 1)); !made) return made;
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!outcomes[i].answer) continue;
    const Artifact& artifact = outcomes[i].answer->artifact;
    const std::string path = output_path(output, jobs[i], artifact.target.form);
    if (Status written = write_file(path, artifact.bytes.view()); !written) return written;
    outcomes[i].output = path;
  }
  return {};
}

void print_results(const std::vector<CompileOutcome>& outcomes, Console& console) {
  std::vector<std::vector<std::string>> rows;
  for (const CompileOutcome& outcome : outcomes) {
    if (!outcome.answer) continue;
    const Answer& answer = *outcome.answer;
    const std::string what =
        answer.origin == Origin::Compiled ? "compiled" : std::string("from ") + to_string(answer.origin);
    rows.push_back({outcome.file, outcome.target, what, size_text(answer.artifact.bytes.size()), time_text(answer.ms),
                    "key " + answer.key.hex().substr(0, 12), outcome.output.empty() ? "" : "-> " + outcome.output});
  }
  if (!rows.empty()) console.print(table_text(rows));
}

// One message for all targets that failed in the same way, which is how most source errors fail.
int print_errors(const std::vector<CompileOutcome>& outcomes, Console& console) {
  int exit_code = kDone;
  std::vector<bool> told(outcomes.size());
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].answer || told[i]) continue;
    const Error& error = outcomes[i].answer.error();
    std::string targets = outcomes[i].target;
    for (std::size_t j = i + 1; j < outcomes.size(); ++j) {
      const CompileOutcome& other = outcomes[j];
      if (other.answer || other.file != outcomes[i].file || other.answer.error().message != error.message ||
          other.answer.error().log != error.log) {
        continue;
      }
      told[j] = true;
      targets += ", " + other.target;
    }
    console.error(error, outcomes[i].file + " for " + targets);
    if (exit_code == kDone) exit_code = exit_code_of(error.code);
  }
  return exit_code;
}

unsigned threads_for(const Arguments& arguments, std::size_t jobs) {
  const unsigned wanted = arguments.jobs != 0 ? arguments.jobs : std::max(1u, std::thread::hardware_concurrency());
  return static_cast<unsigned>(std::min<std::size_t>(wanted, jobs));
}

}  // namespace

int compile_command(const Arguments& arguments, Console& console) {
  const Observer observer(console.listener());
  Toolbox toolbox(Config::load({}, observer), observer);
  const Result<std::vector<Job>> jobs = jobs_of(arguments);
  if (!jobs) {
    console.error(jobs.error());
    return exit_code_of(jobs.error().code);
  }
  if (jobs->size() > 1 && !arguments.output.empty() && !names_folder(arguments.output)) {
    console.error({Code::InvalidArgument, "-o " + arguments.output + " is one file for " +
                                              std::to_string(jobs->size()) + " results; give a folder: -o " +
                                              arguments.output + "/"});
    return kUsage;
  }
  std::vector<CompileOutcome> outcomes = Batch(*jobs, toolbox, console).run(threads_for(arguments, jobs->size()));
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
