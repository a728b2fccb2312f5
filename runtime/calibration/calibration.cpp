// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <kiln/runtime/calibration.hpp>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/files/replace_file.hpp"
#include "base/process/environment.hpp"
#include "base/process/system_info.hpp"
#include "base/visible_text.hpp"
#include "runtime/calibration/calibration_limits.hpp"
#include "runtime/calibration/loaded_calibration.hpp"
#include "runtime/settings/variable_reader.hpp"

namespace kiln::runtime {
namespace {

constexpr std::size_t kMaxModelLength = 200;  // together with the cores within the name limit

Calibration merged(const Calibration& older, const Calibration& newer) {
  Calibration out = older;
  for (const auto& [backend, name] : newer.machine.devices) out.machine.devices[backend] = name;
  for (const OperationCalibration& operation : newer.operations) {
    const auto same = [&](const OperationCalibration& other) { return other.operation == operation.operation; };
    const auto at = std::find_if(out.operations.begin(), out.operations.end(), same);
    if (at == out.operations.end()) {
      out.operations.push_back(operation);
    } else {
      *at = operation;
    }
  }
  return out;
}

Error in_file(const std::string& path, const Error& error) {
  return make_error(error.code, path + ": " + error.message, error.log);
}

}  // namespace

std::string device_text(std::string name) {
  name.resize(std::min(name.size(), kMaxModelLength));
  for (char& c : name) {
    if (c < ' ' || c > '~') c = '?';
  }
  return name;
}

bool Machine::matches(const Machine& other) const {
  if (processor != other.processor) return false;
  return std::all_of(devices.begin(), devices.end(), [&](const auto& device) {
    const auto theirs = other.devices.find(device.first);
    return theirs == other.devices.end() || theirs->second == device.second;
  });
}

std::string Machine::text() const {
  std::string text = processor;
  for (const auto& [backend, name] : devices) text += std::string("; ") + to_string(backend) + ": " + name;
  return text;
}

Machine this_processor() {
  const unsigned cores = usable_cores();
  return {device_text(processor_model()) + ", " + std::to_string(cores) + (cores == 1 ? " core" : " cores"), {}};
}

Machine this_machine(Session& session) {
  Machine machine = this_processor();
  for (const Backend backend : {Backend::OpenCl, Backend::Cuda}) {
    const auto devices = session.devices(device_backend(backend));
    if (devices && !devices->empty()) machine.devices[backend] = device_text(devices->front().name);
  }
  return machine;
}

Result<std::optional<Calibration>> Calibration::read(const std::string& path) {
  const std::optional<FileStamp> stamp = stamp_of(path.c_str());
  if (stamp && stamp->size > kMaxCalibrationBytes) {
    return make_error(Code::Corrupt, path + ": not a calibration: it is larger than 1 MiB");
  }
  const Result<std::optional<Bytes>> bytes = read_file(path);
  if (!bytes) return bytes.error();
  if (!*bytes) return std::optional<Calibration>();
  Result<Calibration> calibration = parse(std::string((*bytes)->view()));
  if (!calibration) return in_file(path, calibration.error());
  return std::optional(std::move(*calibration));
}

Status Calibration::write(const std::string& path) const {
  if (path.empty() || path.back() == '/' || is_directory(path)) {
    return make_error(Code::InvalidArgument, "a calibration needs a file name: '" + path + "' is not a file");
  }
  // The existing file may be unrelated, or written by a later version. Neither is overwritten.
  const Result<std::optional<Calibration>> older = read(path);
  if (!older) {
    return make_error(older.error().code,
                      older.error().message + "; it was not changed: remove it, or give another file");
  }
  const bool keeps = *older && (*older)->machine.matches(machine);
  const std::string text = (keeps ? merged(**older, *this) : *this).text();
  if (const Result<Calibration> again = parse(text); !again) return in_file(path, again.error());

  const std::string directory = parent_path(path);
  if (Status made = make_directories(directory); !made) return made;
  return replace_file(path, text, Durability::Synced);
}

const OperationCalibration* Calibration::find(const std::string& operation) const {
  for (const OperationCalibration& one : operations) {
    if (one.operation == operation) return &one;
  }
  return nullptr;
}

std::optional<std::uint64_t> Calibration::crossover(const std::string& operation, Backend backend) const {
  const OperationCalibration* const found = find(operation);
  if (found == nullptr) return std::nullopt;
  const auto rows = found->thresholds.find(backend);
  return rows == found->thresholds.end() ? std::nullopt : std::optional(rows->second);
}

std::string calibration_path(const RuntimeOptions& options) {
  if (!options.calibration.empty()) return options.calibration;
  if (const auto named = environment_variable("KILN_CALIBRATION"); named && !named->empty()) return *named;
  return user_path("XDG_CONFIG_HOME", ".config", "kiln/calibration.json");
}

std::optional<CalibrationRequest> requested_calibration() {
  const auto path = environment_variable("KILN_CALIBRATE");
  if (!path || path->empty()) return std::nullopt;
  CalibrationRequest asked{*path, {}};
  VariableReader variables;
  const bool quick = variables.boolean("KILN_CALIBRATE_QUICK").value_or(false);
  for (const std::string& warning : variables.warnings()) print_warning(warning);  // there is no session yet
  if (quick) {
    asked.options.sizes = {1, 100, 10'000, 1'000'000};
    asked.options.seconds_per_size = 0.1;
    asked.options.refinements = 1;
  }
  return asked;
}

}  // namespace kiln::runtime
