// SPDX-License-Identifier: Apache-2.0
#include "runtime/dispatch/choose.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace kiln::runtime {
namespace {

bool requires_fp64(const Operation& operation, const EffectiveSettings& settings) {
  return settings.precision.value == PrecisionPolicy::Fp64 || operation.precision() == PrecisionClass::Constructive;
}

bool usable(const Operation& operation, const Variant& variant, Backend backend, const EffectiveSettings& settings) {
  if (variant.backend != backend) return false;
  if (settings.deterministic.value && variant.determinism != Determinism::Deterministic) return false;
  return variant.precision == Precision::Fp64 || !requires_fp64(operation, settings);
}

constexpr const char* kAllowCpuDevice = "; set KILN_ALLOW_CPU_DEVICE=1 to use it";

std::string cpu_device_text(const DeviceInfo& device) {
  return "the OpenCL device \"" + device.name + "\" is a CPU" + kAllowCpuDevice;
}

std::string too_small_text(const Crossover& minimum) {
  if (minimum.rows != kNoCrossover) {
    return "below the crossover of " + std::to_string(minimum.rows) + " rows" + (minimum.measured ? " (measured)" : "");
  }
  return minimum.measured ? "a device is never faster (measured)"
                          : "the crossover was not measured on this machine; run 'kiln calibrate'";
}

/// Selects the backend for one query. Not thread-safe.
class BackendSelector {
 public:
  BackendSelector(const DispatchQuery& question, const RuntimeOptions& options, Session& session,
                  MachineInfoCache& knowledge)
      : question_(question), options_(options), session_(session), knowledge_(knowledge) {}

  Result<CachedDecision> select_backend();

 private:
  Result<CachedDecision> select_resident();
  Result<CachedDecision> select_cpu();
  Result<CachedDecision> any_device(Reason reason, const std::string& text);
  Result<CachedDecision> select_by_size();

  bool has_variant(Backend backend) const {
    return first_without(question_.operations, backend, question_.requests) == nullptr;
  }
  /// Returns true if each operation has a variant for the backend, also if it may not be used.
  bool has_any_variant(Backend backend) const;
  std::string restriction() const { return restriction_text(question_.operations, question_.requests); }
  /// Returns true if the query has at least `rows` rows. Limits the validity of the choice to row counts on the same
  /// side of `rows`.
  bool at_least(std::uint64_t rows);
  Crossover min_crossover(Backend backend);
  Crossover crossover(Backend backend, const DeviceInfo& device);

  CachedDecision on_device(Backend backend, const DeviceInfo& device, Reason reason, std::string text);
  CachedDecision made(Backend backend, unsigned fp64_ratio, Reason reason, std::string text);
  /// Returns the device of a backend, or an error if it is missing, or is a CPU and CPU devices are not allowed. If
  /// that is known without the driver, opens none.
  Result<DeviceInfo> usable_device(Backend backend);
  Error no_variant(const std::string& what) const;
  void add_missing(Backend backend, const std::string& reason);

  const DispatchQuery& question_;
  const RuntimeOptions& options_;
  Session& session_;
  MachineInfoCache& knowledge_;
  std::string missing_;               // "cuda: why; opencl: why"
  bool cpu_device_left_out_ = false;  // a missing device is a CPU that is not allowed
  std::uint64_t low_ = 0;
  std::uint64_t high_ = kNoCrossover;
};

Result<CachedDecision> BackendSelector::select_backend() {
  if (question_.request.residency == Residency::Device) return select_resident();
  switch (question_.requests.mode.value) {
    case Mode::Cpu: return select_cpu();
    case Mode::Gpu:
      return any_device(Reason::Requested,
                        std::string("gpu was requested by ") + mode_source_text(question_.requests.mode.source));
    case Mode::Auto: break;
  }
  return select_by_size();
}

Result<CachedDecision> BackendSelector::select_resident() {
  const std::string name = question_.name;
  const Backend where = question_.request.device;
  if (!runtime::on_device(where)) {
    return make_error(
        Code::InvalidArgument,
        "the rows of " + name + " are on a device, but the device is not given: set DispatchRequest::device");
  }
  const std::string place = to_string(where);
  if (question_.requests.mode.value == Mode::Cpu) {
    return make_error(Code::Unsupported, std::string("cpu was requested by ") +
                                             mode_source_text(question_.requests.mode.source) + ", but the rows of " +
                                             name + " are on a device (" + place +
                                             ") and are not copied implicitly; materialize them first, or set "
                                             "the mode to auto or gpu");
  }
  if (!has_variant(where)) return no_variant("for " + place + ", where its rows are; materialize them first");
  const auto device = knowledge_.device(session_, where);
  if (!device) {
    return make_error(Code::Unavailable, "the rows of " + name + " are on " + place + ": " + device.error().message);
  }
  // In mode auto a CPU device needs no permission here: the program brought the rows there itself.
  if (device->is_cpu && !question_.requests.allow_cpu_device.value && question_.requests.mode.value == Mode::Gpu) {
    return make_error(Code::Unavailable, std::string("gpu was requested by ") +
                                             mode_source_text(question_.requests.mode.source) + ", but the rows of " +
                                             name + " are on " + place + ": " + cpu_device_text(*device));
  }
  return on_device(where, *device, Reason::Resident,
                   "the rows are on " + place + (device->is_cpu ? ", a CPU device," : "") + " and stay there");
}

Result<CachedDecision> BackendSelector::select_cpu() {
  const std::string asked = std::string("cpu was requested by ") + mode_source_text(question_.requests.mode.source);
  if (!has_variant(Backend::Cpu)) return no_variant("for the CPU, and " + asked + "; set the mode to auto or gpu");
  return made(Backend::Cpu, 0, Reason::Requested, asked);
}

// Selects the first available device with a variant, regardless of the number of rows.
Result<CachedDecision> BackendSelector::any_device(Reason reason, const std::string& text) {
  bool any = false;
  for (const Backend backend : options_.devices) {
    if (!has_variant(backend)) {
      add_missing(backend, "no variant" + restriction());
      continue;
    }
    any = true;
    const auto device = usable_device(backend);
    if (device) return on_device(backend, *device, reason, text);
    add_missing(backend, device.error().message);
  }
  if (options_.devices.empty()) missing_ = "RuntimeOptions::devices allows none";
  const std::string what_next =
      has_variant(Backend::Cpu) ? "set the mode to auto or cpu, or install what is missing" : "install what is missing";
  return make_error(any ? Code::Unavailable : Code::Unsupported,
                    text + ", but " + question_.name + " cannot run on a device: " + missing_ + "; " + what_next);
}

Result<CachedDecision> BackendSelector::select_by_size() {
  if (!has_variant(Backend::Cpu))
    return any_device(Reason::OnlyVariant, "there is no variant" + restriction() + " for the CPU");
  bool any = false;
  Crossover minimum;
  for (const Backend backend : options_.devices) {
    if (!has_variant(backend)) continue;
    any = true;
    Crossover from = min_crossover(backend);
    if (at_least(from.rows)) {
      const auto device = usable_device(backend);
      if (!device) {
        add_missing(backend, device.error().message);
        continue;
      }
      from = crossover(backend, *device);
      if (at_least(from.rows)) {
        CachedDecision choice = on_device(backend, *device, Reason::AboveCrossover,
                                          "at or above " + std::to_string(from.rows) + " rows, where " +
                                              to_string(backend) + " is faster" + (from.measured ? " (measured)" : ""));
        choice.decision.crossover = from.rows;
        choice.decision.measured = from.measured;
        return choice;
      }
    }
    if (from.rows <= minimum.rows) minimum = from;
  }
  if (!missing_.empty()) {
    CachedDecision choice =
        made(Backend::Cpu, 0, Reason::NoDevice, "enough for a device, but none is available: " + missing_);
    choice.decision.fallback = true;
    choice.decision.cpu_device = cpu_device_left_out_;
    return choice;
  }
  if (any) {
    CachedDecision choice = made(Backend::Cpu, 0, Reason::BelowCrossover, too_small_text(minimum));
    choice.decision.crossover = minimum.rows;
    choice.decision.measured = minimum.measured;
    return choice;
  }
  const bool left_out = has_any_variant(Backend::OpenCl) || has_any_variant(Backend::Cuda);
  if (!left_out) return made(Backend::Cpu, 0, Reason::OnlyVariant, "there is only a variant for the CPU");
  return made(Backend::Cpu, 0, Reason::NoVariant, "there is no variant" + restriction() + " for an allowed device");
}

bool BackendSelector::has_any_variant(Backend backend) const {
  return std::all_of(question_.operations.begin(), question_.operations.end(), [&](const Operation* operation) {
    return std::any_of(operation->begin(), operation->end(),
                       [&](const Variant& variant) { return variant.backend == backend; });
  });
}

bool BackendSelector::at_least(std::uint64_t rows) {
  if (question_.request.rows >= rows) {
    low_ = std::max(low_, rows);
    return true;
  }
  high_ = std::min(high_, rows);
  return false;
}

// Returns the largest crossover of several operations. At or above it, none of them is slower on the device.
Crossover BackendSelector::min_crossover(Backend backend) {
  Crossover largest{0, true};
  for (const Operation* operation : question_.operations) {
    Crossover minimum;
    for (const Variant& variant : *operation) {
      if (!usable(*operation, variant, backend, question_.requests)) continue;
      const Crossover its = knowledge_.estimated_crossover(session_, *operation, variant);
      if (its.rows <= minimum.rows) minimum = its;
    }
    largest = {std::max(largest.rows, minimum.rows), largest.measured && minimum.measured};
  }
  return largest;
}

Crossover BackendSelector::crossover(Backend backend, const DeviceInfo& device) {
  Crossover largest{0, true};
  for (const Operation* operation : question_.operations) {
    const Variant* variant = variant_of(*operation, backend, device.fp64_ratio, question_.requests);
    const Crossover its = knowledge_.crossover(session_, *operation, *variant);
    largest = {std::max(largest.rows, its.rows), largest.measured && its.measured};
  }
  return largest;
}

CachedDecision BackendSelector::on_device(Backend backend, const DeviceInfo& device, Reason reason, std::string text) {
  CachedDecision choice = made(backend, device.fp64_ratio, reason, std::move(text));
  choice.decision.device = device.name;
  choice.decision.cpu_device = device.is_cpu;
  return choice;
}

CachedDecision BackendSelector::made(Backend backend, unsigned fp64_ratio, Reason reason, std::string text) {
  const Operation& first = *question_.operations.front();
  CachedDecision choice;
  Decision& decision = choice.decision;
  decision.operation = &first;
  decision.fp64_ratio = fp64_ratio;
  decision.planned_precision = planned_precision(first, fp64_ratio, question_.requests);
  decision.variant = variant_of(first, backend, fp64_ratio, question_.requests);
  decision.requested = question_.requests.mode.value;
  decision.source = question_.requests.mode.source;
  decision.selected = backend;
  decision.precision = decision.variant->precision;
  decision.reason = reason;
  decision.explanation = std::move(text);
  decision.residency = question_.request.residency;
  choice.low = low_;
  choice.high = high_;
  return choice;
}

Result<DeviceInfo> BackendSelector::usable_device(Backend backend) {
  const bool allowed = question_.requests.allow_cpu_device.value;
  const bool by_size = question_.requests.mode.value == Mode::Auto;
  if (!allowed && by_size && session_.has_only_cpu_devices(device_backend(backend))) {
    cpu_device_left_out_ = true;
    return make_error(Code::Unavailable, std::string("the only OpenCL devices are CPUs") + kAllowCpuDevice);
  }
  auto device = knowledge_.device(session_, backend);
  if (!device || !device->is_cpu || allowed) return device;
  cpu_device_left_out_ = true;
  return make_error(Code::Unavailable, cpu_device_text(*device));
}

Error BackendSelector::no_variant(const std::string& what) const {
  return make_error(Code::Unsupported, std::string(question_.name) + " has no variant" + restriction() + " " + what);
}

void BackendSelector::add_missing(Backend backend, const std::string& reason) {
  missing_ += (missing_.empty() ? "" : "; ") + std::string(to_string(backend)) + ": " + reason;
}

}  // namespace

Precision planned_precision(const Operation& operation, unsigned fp64_ratio, const EffectiveSettings& settings) {
  return planned_precision(operation.precision(), fp64_ratio, settings.precision.value);
}

const Variant* variant_of(const Operation& operation, Backend backend, unsigned fp64_ratio,
                          const EffectiveSettings& settings) {
  const Precision planned = planned_precision(operation, fp64_ratio, settings);
  const Variant* best = nullptr;
  for (const Variant& variant : operation) {
    if (!usable(operation, variant, backend, settings)) continue;
    if (variant.precision == planned) return &variant;
    const bool better = best == nullptr || (variant.precision == Precision::Fp64 && best->precision != Precision::Fp64);
    if (better) best = &variant;
  }
  return best;
}

const Operation* first_without(std::span<const Operation* const> operations, Backend backend,
                               const EffectiveSettings& settings) {
  for (const Operation* operation : operations) {
    if (variant_of(*operation, backend, 0, settings) == nullptr) return operation;
  }
  return nullptr;
}

std::string restriction_text(std::span<const Operation* const> operations, const EffectiveSettings& settings) {
  const bool fp64_only = std::any_of(operations.begin(), operations.end(), [&](const Operation* operation) {
    const bool has_less = std::any_of(operation->begin(), operation->end(),
                                      [](const Variant& variant) { return variant.precision != Precision::Fp64; });
    return has_less && requires_fp64(*operation, settings);
  });
  const bool requested = settings.precision.value == PrecisionPolicy::Fp64;
  std::string text;
  if (fp64_only) text += requested ? " in fp64 (as requested)" : " in fp64 (as a constructive operation requires)";
  if (settings.deterministic.value) text += " that is deterministic (as requested)";
  return text;
}

Result<CachedDecision> select_backend(const DispatchQuery& question, const RuntimeOptions& options, Session& session,
                                      MachineInfoCache& knowledge) {
  return BackendSelector(question, options, session, knowledge).select_backend();
}

}  // namespace kiln::runtime
