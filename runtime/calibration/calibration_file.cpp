// SPDX-License-Identifier: Apache-2.0
// docs/internals/formats/small-files.md describes the format.
#include <cmath>
#include <set>
#include <string_view>

#include <kiln/runtime/calibration.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "runtime/calibration/calibration_limits.hpp"

namespace kiln::runtime {
namespace {

constexpr std::string_view kMagic = "calibration ";
constexpr std::string_view kVersion = "1";
constexpr Backend kBackends[] = {Backend::Cpu, Backend::OpenCl, Backend::Cuda};

Error corrupt(const std::string& what) { return make_error(Code::Corrupt, "not a calibration: " + what); }

bool read_text(const SortedJson& value, std::size_t longest, std::string& to) {
  if (!value.is_string() || value.get_ref<const std::string&>().size() > longest) return false;
  to = value.get<std::string>();
  return true;
}

bool read_number(const SortedJson& value, double& to) {
  if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0) return false;
  to = value.get<double>();
  return true;
}

bool read_timings(const SortedJson& values, std::vector<Timing>& to) {
  if (!values.is_array() || values.size() > kMaxTimings) return false;
  for (const SortedJson& value : values) {
    Timing& timing = to.emplace_back();
    const SortedJson& rows = member_of(value, "rows");
    const SortedJson& runs = member_of(value, "runs");
    if (!rows.is_number_unsigned() || !runs.is_number_unsigned() || runs.get<std::uint64_t>() > kMaxRuns ||
        !read_number(member_of(value, "median_ms"), timing.median_ms) ||
        !read_number(member_of(value, "spread"), timing.spread)) {
      return false;
    }
    timing.rows = rows.get<std::uint64_t>();
    timing.runs = runs.get<unsigned>();
  }
  return true;
}

bool read_stages(const SortedJson& values, std::vector<StageTime>& to) {
  if (!values.is_array() || values.size() > kMaxStages) return false;
  for (const SortedJson& value : values) {
    StageTime& stage = to.emplace_back();
    if (!read_text(member_of(value, "operation"), kMaxNameLength, stage.operation) ||
        !read_text(member_of(value, "stage"), kMaxNameLength, stage.stage) ||
        !read_text(member_of(value, "where"), kMaxNameLength, stage.location) ||
        !read_number(member_of(value, "ms"), stage.ms)) {
      return false;
    }
  }
  return true;
}

bool read_notes(const SortedJson& values, std::vector<std::string>& to) {
  if (values.is_null()) return true;
  if (!values.is_array() || values.size() > kMaxNotes) return false;
  for (const SortedJson& value : values) {
    if (!read_text(value, kMaxNoteLength, to.emplace_back())) return false;
  }
  return true;
}

bool read_crossover(const SortedJson& value, std::uint64_t& to) {
  if (!value.is_null() && !value.is_number_unsigned()) return false;
  to = value.is_null() ? kNoCrossover : value.get<std::uint64_t>();
  return true;
}

Result<OperationCalibration> read_operation(const SortedJson& value) {
  OperationCalibration out;
  if (!read_text(member_of(value, "operation"), kMaxNameLength, out.operation) || out.operation.empty()) {
    return corrupt("the name of an operation is missing or too long");
  }
  const auto wrong = [&](const char* what) { return corrupt(std::string(what) + " of an operation cannot be read"); };
  if (!read_text(member_of(value, "date"), kMaxNameLength, out.date)) return wrong("the date");
  if (!read_notes(member_of(value, "notes"), out.notes)) return wrong("the notes");
  const SortedJson& crossovers = member_of(value, "crossovers");
  const SortedJson& evidence = member_of(value, "evidence");
  const SortedJson& longest = member_of(value, "longest");
  for (const Backend backend : kBackends) {
    const char* const name = to_string(backend);
    if (on_device(backend) && crossovers.is_object() && crossovers.contains(name) &&
        !read_crossover(crossovers[name], out.thresholds[backend])) {
      return wrong("the crossovers");
    }
    if (evidence.is_object() && evidence.contains(name) && !read_timings(evidence[name], out.timings[backend])) {
      return wrong("the times");
    }
    if (longest.is_object() && longest.contains(name) && !read_stages(longest[name], out.longest_stages[backend])) {
      return wrong("the stages");
    }
  }
  return out;
}

Result<Machine> read_machine(const SortedJson& value) {
  Machine machine;
  if (!read_text(member_of(value, "processor"), kMaxNameLength, machine.processor) || machine.processor.empty()) {
    return corrupt("the processor is missing");
  }
  for (const Backend backend : kBackends) {
    const char* const name = to_string(backend);
    if (!on_device(backend) || !value.contains(name)) continue;
    if (!read_text(value[name], kMaxNameLength, machine.devices[backend])) return corrupt("a device has no name");
  }
  return machine;
}

Status check_version(const SortedJson& file) {
  std::string magic;
  if (!read_text(member_of(file, "kiln"), kMaxNameLength, magic) || !magic.starts_with(kMagic)) {
    return corrupt(R"(it does not start with "kiln": "calibration 1")");
  }
  const std::string version = magic.substr(kMagic.size(), kMaxShownLength);
  if (version == kVersion) return {};
  return make_error(Code::Unsupported, "unsupported calibration version " + version + ": this kiln supports version " +
                                           std::string(kVersion) + "; create a new one with 'kiln calibrate'");
}

double finite(double value) { return std::isfinite(value) ? value : 0; }

Json operation_object(const OperationCalibration& operation) {
  Json crossovers = Json::object();
  for (const auto& [backend, rows] : operation.thresholds) {
    crossovers[to_string(backend)] = rows == kNoCrossover ? Json(nullptr) : Json(rows);
  }
  Json evidence = Json::object();
  for (const auto& [backend, timings] : operation.timings) {
    Json& list = evidence[to_string(backend)] = Json::array();
    for (const Timing& timing : timings) {
      list.push_back({{"rows", timing.rows},
                      {"median_ms", finite(timing.median_ms)},
                      {"spread", finite(timing.spread)},
                      {"runs", timing.runs}});
    }
  }
  Json longest = Json::object();
  for (const auto& [backend, stages] : operation.longest_stages) {
    Json& list = longest[to_string(backend)] = Json::array();
    for (const StageTime& stage : stages) {
      list.push_back({{"operation", stage.operation},
                      {"stage", stage.stage},
                      {"where", stage.location},
                      {"ms", finite(stage.ms)}});
    }
  }
  Json out{{"operation", operation.operation}, {"date", operation.date}};
  out["crossovers"] = std::move(crossovers);
  out["evidence"] = std::move(evidence);
  out["longest"] = std::move(longest);
  if (!operation.notes.empty()) out["notes"] = operation.notes;
  return out;
}

}  // namespace

Result<Calibration> Calibration::parse(const std::string& text) {
  if (text.size() > kMaxCalibrationBytes) return corrupt("it is larger than 1 MiB");
  const Result<SortedJson> file = parse_json(text, {kMaxCalibrationDepth, kMaxCalibrationValues});
  if (!file) return corrupt("it " + file.error().message);
  if (!file->is_object()) return corrupt("it is not a JSON object");
  if (Status version = check_version(*file); !version) return version.error();
  Result<Machine> machine = read_machine(member_of(*file, "machine"));
  if (!machine) return machine.error();
  const SortedJson& operations = member_of(*file, "operations");
  if (!operations.is_array() || operations.size() > kMaxOperations) {
    return corrupt("it has no operations or more than " + std::to_string(kMaxOperations));
  }
  Calibration calibration{std::move(*machine), {}};
  std::set<std::string> names;
  for (const SortedJson& value : operations) {
    Result<OperationCalibration> operation = read_operation(value);
    if (!operation) return operation.error();
    if (!names.insert(operation->operation).second) return corrupt("duplicate operation");
    calibration.operations.push_back(std::move(*operation));
  }
  return calibration;
}

std::string Calibration::text() const {
  Json on{{"processor", machine.processor}};
  for (const auto& [backend, name] : machine.devices) on[to_string(backend)] = name;
  Json list = Json::array();
  for (const OperationCalibration& operation : operations) list.push_back(operation_object(operation));
  Json file{{"kiln", std::string(kMagic) + std::string(kVersion)}};
  file["machine"] = std::move(on);
  file["operations"] = std::move(list);
  return json_text(file, 1) + '\n';
}

}  // namespace kiln::runtime
