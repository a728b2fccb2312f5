// SPDX-License-Identifier: Apache-2.0
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
#include "apps/kiln/output/progress.hpp"
#include "apps/kiln/output/render_json.hpp"
#include "backends/command/command_toolchain.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/process/environment.hpp"
#include "base/process/process.hpp"
#include "base/process/system_info.hpp"

namespace kiln::cli {
namespace {

using runtime::Backend;
using runtime::Calibration;
using runtime::OperationCalibration;
using runtime::Timing;

constexpr const char* kHowTo =
    "a program that supports calibration calls kiln::runtime::calibration_asked_for() (docs/how-to/calibrate.md)";

/// The file to which the program writes its measurements. The destructor removes it.
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

// Returns the environment of this process without the variables that would change what the program measures.
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
  Process::SpawnOptions start;
  start.arguments = command;
  const bool is_path = command[0].find('/') != std::string::npos;
  start.arguments[0] = find_program(is_path ? std::filesystem::absolute(command[0]).string() : command[0],
                                    environment_variable("PATH").value_or(""));
  if (start.arguments[0].empty()) {
    return make_error(Code::Io, "cannot find the program '" + command[0] + "'; give its path or a name in PATH");
  }
  start.environment = child_environment(result, quick);
  start.descriptors = {{STDERR_FILENO, STDOUT_FILENO}};  // standard output is reserved for the result
  start.new_session = false;                             // Ctrl-C must reach both processes
  Result<Process> process = Process::spawn(start);
  if (!process) return process.error();
  std::optional<Process::Exit> exit;
  while (!exit) exit = process->wait(std::chrono::hours(1));
  if (exit->succeeded()) return {};
  const std::string how = exit->signal != 0 ? "was terminated by signal " + std::to_string(exit->signal)
                                            : "returned " + std::to_string(exit->code);
  return make_error(Code::Io, "'" + format_command_line(command) + "' " + how + " without a calibration; " + kHowTo);
}

Result<Calibration> measured_by(const std::vector<std::string>& command, bool quick) {
  Result<std::string> directory = host_local_directory();
  if (!directory) return directory.error();
  const ResultFile result(*directory + "/calibrate-" + std::to_string(getpid()) + ".json");
  if (Status ran = run_program(command, result.path(), quick); !ran) return ran.error();
  Result<std::optional<Calibration>> read = Calibration::read(result.path());
  if (!read) return make_error(read.error().code, "the program wrote an invalid calibration: " + read.error().message);
  if (!*read || (*read)->operations.empty()) {
    return make_error(Code::Io, "'" + format_command_line(command) + "' exited without measuring anything; " + kHowTo);
  }
  return std::move(**read);
}

// Formats a time with enough digits for operations that take less than 0.01 ms.
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

std::string crossover_text(const OperationCalibration& operation) {
  if (operation.thresholds.empty()) return "no device on this machine: cpu";
  std::string text;
  for (const auto& [backend, rows] : operation.thresholds) {
    text += (text.empty() ? "" : "; ") + std::string(to_string(backend));
    text += rows == runtime::kNoCrossover ? " is never faster" : " at " + count_text(rows) + " rows or more";
  }
  return text;
}

std::string times_table(const OperationCalibration& operation) {
  std::vector<std::vector<std::string>> table = {{"ROWS"}};
  std::set<std::uint64_t> sizes;
  for (const auto& [backend, timings] : operation.timings) {
    table[0].push_back(backend == Backend::Cpu ? "CPU" : backend == Backend::OpenCl ? "OPENCL" : "CUDA");
    for (const Timing& timing : timings) sizes.insert(timing.rows);
  }
  for (const std::uint64_t rows : sizes) {
    std::vector<std::string>& line = table.emplace_back(1, count_text(rows));
    for (const auto& [backend, timings] : operation.timings) {
      std::string& cell = line.emplace_back("-");
      for (const Timing& timing : timings) {
        if (timing.rows == rows) cell = timing_text(timing);
      }
    }
  }
  return table_text(table, "  ");
}

// Returns the measurements of an operation: the crossovers, one row per size, the longest stages.
std::string calibration_text(const OperationCalibration& operation) {
  std::string text = printable(operation.operation) + ": " + crossover_text(operation) + '\n' + times_table(operation);
  for (const auto& [backend, stages] : operation.longest_stages) {
    const auto timings = operation.timings.find(backend);
    if (stages.empty() || timings == operation.timings.end() || timings->second.empty()) continue;
    text += std::string("  longest stages, ") + to_string(backend) + ", " + count_text(timings->second.back().rows) +
            " rows: ";
    std::string list;
    for (const auto& stage : stages) {
      list += (list.empty() ? "" : ", ") + printable(stage.stage) + " " + short_time(stage.ms) + " (" +
              printable(stage.location) + ")";
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
  for (const OperationCalibration& operation : calibration.operations) console.print(calibration_text(operation));
  console.print("machine  " + printable(calibration.machine.text()) + "\nfile     " + path);
}

int show(const std::string& path, const Arguments& arguments, Console& console) {
  const Result<std::optional<Calibration>> read = Calibration::read(path);
  if (!read) return report(read.error(), console);
  if (!*read) {
    return report(
        make_error(Code::Io, "no calibration at " + path +
                                 ": mode auto uses the estimates of the program authors; 'kiln calibrate -- PROGRAM' "
                                 "measures this machine"),
        console);
  }
  if (!(*read)->machine.matches(runtime::this_processor())) {
    console.warn("the calibration is from another machine and is not used here: this is " +
                 runtime::this_processor().processor);
  }
  print(**read, path, arguments, console);
  return kSuccess;
}

}  // namespace

int calibrate_command(const Arguments& arguments, Console& console) {
  runtime::RuntimeOptions options;
  options.calibration = arguments.calibration;
  const std::string path = runtime::calibration_path(options);
  if (path.empty()) {
    return report(make_error(Code::InvalidArgument, "there is no home directory for the calibration: give --file"),
                  console);
  }
  if (arguments.show) return show(path, arguments, console);
  if (arguments.program.empty()) {
    return report(
        make_error(Code::InvalidArgument, "give the program to calibrate: kiln calibrate -- PROGRAM [ARGUMENT…]"),
        console);
  }
  // Check the existing file before measuring for minutes, because it may not be a calibration that can be replaced.
  const Result<std::optional<Calibration>> older = Calibration::read(path);
  if (!older) return report(older.error(), console, "remove it, or name another file with --file");
  const Result<Calibration> measured = [&] {
    const Progress progress(console, {"measuring; do not run anything else on this machine;", {}});
    return measured_by(arguments.program, arguments.quick);
  }();
  if (!measured) return report(measured.error(), console);
  if (*older && !(*older)->machine.matches(measured->machine)) {
    console.warn("the calibration of another machine (" + printable((*older)->machine.text()) + ") was replaced");
  }
  if (Status written = measured->write(path); !written) return report(written.error(), console);
  print(*measured, path, arguments, console);
  return kSuccess;
}

}  // namespace kiln::cli
