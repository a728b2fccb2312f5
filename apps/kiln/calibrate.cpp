#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/runtime/calibration.hpp>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/progress.hpp"
#include "apps/kiln/render_json.hpp"
#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/machine.hpp"
#include "base/process.hpp"
#include "compile/command_tools.hpp"

namespace kiln::cli {
namespace {

using runtime::Backend;
using runtime::Calibration;
using runtime::Crossovers;
using runtime::Timing;

constexpr const char* kHowTo =
    "a program that can be calibrated asks kiln::runtime::calibration_asked_for() and answers it: docs/calibration.md";

/// The file that the program is to write, removed at the end.
class ResultFile {
 public:
  explicit ResultFile(std::string path) : path_(std::move(path)) { unlink(path_.c_str()); }
  ~ResultFile() { unlink(path_.c_str()); }
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

// Ours, without what would have the program measure something else.
std::vector<std::string> child_environment(const std::string& result, bool quick) {
  static constexpr std::string_view kLeftOut[] = {
      "KILN_EXECUTION_MODE=", "KILN_TIME_STAGES=", "KILN_CALIBRATE=", "KILN_CALIBRATE_QUICK="};
  std::vector<std::string> environment;
  for (std::string& entry : current_environment()) {
    bool left_out = false;
    for (const std::string_view name : kLeftOut) left_out = left_out || entry.starts_with(name);
    if (!left_out) environment.push_back(std::move(entry));
  }
  environment.push_back("KILN_CALIBRATE=" + result);
  if (quick) environment.emplace_back("KILN_CALIBRATE_QUICK=1");
  return environment;
}

Status run_program(const std::vector<std::string>& command, const std::string& result, bool quick) {
  Process::Start start;
  start.arguments = command;
  const bool is_path = command[0].find('/') != std::string::npos;
  start.arguments[0] = find_program(is_path ? std::filesystem::absolute(command[0]).string() : command[0],
                                    environment_variable("PATH").value_or(""));
  if (start.arguments[0].empty()) {
    return failure(Code::Io, "there is no program '" + command[0] + "'; give its path, or a name that PATH finds");
  }
  start.environment = child_environment(result, quick);
  start.descriptors = {{STDERR_FILENO, STDOUT_FILENO}};  // standard output is for what was measured
  start.own_session = false;                             // Ctrl-C is meant for both
  Result<Process> process = Process::spawn(start);
  if (!process) return process.error();
  std::optional<Process::Exit> exit;
  while (!exit) exit = process->wait(std::chrono::hours(1));
  if (exit->clean()) return {};
  const std::string how = exit->signal != 0 ? "was ended by signal " + std::to_string(exit->signal)
                                            : "returned " + std::to_string(exit->code);
  return failure(Code::Io, "'" + shown_command(command) + "' " + how + ", and nothing was calibrated; " + kHowTo);
}

Result<Calibration> measured_by(const std::vector<std::string>& command, bool quick) {
  Result<std::string> folder = host_local_directory();
  if (!folder) return folder.error();
  const ResultFile result(*folder + "/calibrate-" + std::to_string(getpid()) + ".json");
  if (Status ran = run_program(command, result.path(), quick); !ran) return ran.error();
  Result<std::optional<Calibration>> read = Calibration::read(result.path());
  if (!read) return failure(read.error().code, "what the program wrote cannot be used: " + read.error().message);
  if (!*read || (*read)->operations.empty()) {
    return failure(Code::Io, "'" + shown_command(command) + "' ended and had nothing measured; " + kHowTo);
  }
  return std::move(**read);
}

// Small operations take less than a hundredth of a millisecond.
std::string short_time(double ms) {
  if (ms >= 0.1) return time_text(ms);
  char text[32];
  std::snprintf(text, sizeof text, ms < 0.01 ? "%.2f µs" : "%.1f µs", ms * 1000);
  return text;
}

std::string timing_text(const Timing& timing) {
  return short_time(timing.median_ms) + " ± " + std::to_string(std::lround(timing.spread * 50)) + " %";
}

// `12,345`
std::string count_text(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string crossover_text(const Crossovers& operation) {
  if (operation.rows.empty()) return "no device is here: cpu";
  std::string text;
  for (const auto& [backend, rows] : operation.rows) {
    text += (text.empty() ? "" : "; ") + std::string(to_string(backend));
    text += rows == runtime::kNever ? " is never worth it" : " from " + count_text(rows) + " rows on";
  }
  return text;
}

std::string times_table(const Crossovers& operation) {
  std::vector<std::vector<std::string>> table = {{"ROWS"}};
  std::set<std::uint64_t> sizes;
  for (const auto& [backend, timings] : operation.evidence) {
    table[0].push_back(backend == Backend::Cpu ? "CPU" : backend == Backend::OpenCl ? "OPENCL" : "CUDA");
    for (const Timing& timing : timings) sizes.insert(timing.rows);
  }
  for (const std::uint64_t rows : sizes) {
    std::vector<std::string>& line = table.emplace_back(1, count_text(rows));
    for (const auto& [backend, timings] : operation.evidence) {
      std::string& cell = line.emplace_back("-");
      for (const Timing& timing : timings) {
        if (timing.rows == rows) cell = timing_text(timing);
      }
    }
  }
  return table_text(table, "  ");
}

// What was measured of an operation: the crossovers, a row per size, the longest stages.
std::string calibration_text(const Crossovers& operation) {
  std::string text = printable(operation.operation) + ": " + crossover_text(operation) + '\n' + times_table(operation);
  for (const auto& [backend, stages] : operation.longest) {
    const auto timings = operation.evidence.find(backend);
    if (stages.empty() || timings == operation.evidence.end() || timings->second.empty()) continue;
    text += std::string("  longest stages, ") + to_string(backend) + ", " + count_text(timings->second.back().rows) +
            " rows: ";
    std::string list;
    for (const auto& stage : stages) {
      list += (list.empty() ? "" : ", ") + printable(stage.stage) + " " + short_time(stage.ms) + " (" +
              printable(stage.where) + ")";
    }
    text += list + '\n';
  }
  for (const std::string& note : operation.notes) text += "  note: " + printable(note) + '\n';
  return text;
}

void print(const Calibration& calibration, const std::string& path, const Arguments& arguments, Console& console) {
  if (arguments.json) {
    console.print(calibration_json(path, calibration.text()));
    return;
  }
  for (const Crossovers& operation : calibration.operations) console.print(calibration_text(operation));
  console.print("machine  " + printable(calibration.machine.text()) + "\nfile     " + path);
}

int show(const std::string& path, const Arguments& arguments, Console& console) {
  const Result<std::optional<Calibration>> read = Calibration::read(path);
  if (!read) return report(read.error(), console);
  if (!*read) {
    return report(failure(Code::Io, "there is no calibration at " + path +
                                        ": auto goes by what the programs' authors wrote; 'kiln calibrate -- PROGRAM' "
                                        "measures this machine"),
                  console);
  }
  if (!(*read)->machine.agrees_with(runtime::this_processor())) {
    console.warn("it was made on another machine, and is not used here: this is " +
                 runtime::this_processor().processor);
  }
  print(**read, path, arguments, console);
  return kDone;
}

}  // namespace

int calibrate_command(const Arguments& arguments, Console& console) {
  runtime::RuntimeOptions options;
  options.calibration = arguments.calibration;
  const std::string path = runtime::calibration_path(options);
  if (path.empty()) {
    return report(failure(Code::InvalidArgument, "there is no home folder to put the calibration into: give --file"),
                  console);
  }
  if (arguments.show) return show(path, arguments, console);
  if (arguments.program.empty()) {
    return report(
        failure(Code::InvalidArgument, "give the program to calibrate: kiln calibrate -- PROGRAM [ARGUMENT…]"),
        console);
  }
  // Before minutes of measuring: what is there already may be nothing that can be written over.
  const Result<std::optional<Calibration>> older = Calibration::read(path);
  if (!older) return report(older.error(), console, "remove it, or name another file with --file");
  const Result<Calibration> measured = [&] {
    const Progress progress(console, {"measuring; let the machine do nothing else meanwhile;", {}});
    return measured_by(arguments.program, arguments.quick);
  }();
  if (!measured) return report(measured.error(), console);
  if (*older && !(*older)->machine.agrees_with(measured->machine)) {
    console.warn("the calibration of another machine (" + printable((*older)->machine.text()) + ") was replaced");
  }
  if (Status written = measured->write(path); !written) return report(written.error(), console);
  print(*measured, path, arguments, console);
  return kDone;
}

}  // namespace kiln::cli
