#include "runtime/choose.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace kiln::runtime {
namespace {

bool usable(const Variant& variant, Backend backend, bool deterministic) {
  return variant.backend == backend && (!deterministic || variant.determinism == Determinism::Deterministic);
}

std::string too_small_text(const Crossover& least) {
  if (least.rows != kNever) {
    return "fewer than the " + std::to_string(least.rows) + " from which on a device is worth it" +
           (least.measured ? ", as measured here" : "");
  }
  return least.measured
             ? "a device is never worth it, as measured here"
             : "from how many rows on a device is worth it was not measured here, which 'kiln calibrate' does";
}

/// One choice as it is made. On the stack of one thread.
class Chooser {
 public:
  Chooser(const Question& question, const RuntimeOptions& options, Session& session, Knowledge& knowledge)
      : question_(question), options_(options), session_(session), knowledge_(knowledge) {}

  Result<Choice> choose();

 private:
  Result<Choice> resident();
  Result<Choice> asked_cpu();
  Result<Choice> any_device(Reason reason, const std::string& text);
  Result<Choice> weighed();

  bool can(Backend backend, bool deterministic) const;
  bool can(Backend backend) const { return can(backend, options_.deterministic); }
  /// Whether there are so many rows; from then on the choice is good only for numbers on the same side.
  bool at_least(std::uint64_t rows);
  Crossover least_crossover(Backend backend);
  Crossover crossover(Backend backend, const DeviceInfo& device);

  Choice on_device(Backend backend, const DeviceInfo& device, Reason reason, std::string text);
  Choice made(Backend backend, unsigned fp64_ratio, Reason reason, std::string text);
  Error no_variant(const std::string& what) const;
  void miss(Backend backend, const std::string& why);

  const Question& question_;
  const RuntimeOptions& options_;
  Session& session_;
  Knowledge& knowledge_;
  std::string missing_;  // "cuda: why; opencl: why"
  std::uint64_t low_ = 0;
  std::uint64_t high_ = kNever;
};

Result<Choice> Chooser::choose() {
  if (question_.request.residency == Residency::Device) return resident();
  switch (question_.wishes.mode) {
    case Mode::Cpu: return asked_cpu();
    case Mode::Gpu:
      return any_device(Reason::Asked, std::string("gpu was asked for by ") + asked_by(question_.wishes.source));
    case Mode::Auto: break;
  }
  return weighed();
}

Result<Choice> Chooser::resident() {
  const std::string name = question_.name;
  const Backend where = question_.request.device;
  if (!runtime::on_device(where)) {
    return failure(Code::InvalidArgument,
                   "the rows of " + name + " are said to be on a device, but not on which: Request::device says it");
  }
  const std::string place = to_string(where);
  if (question_.wishes.mode == Mode::Cpu) {
    return failure(Code::Unsupported, std::string("cpu was asked for by ") + asked_by(question_.wishes.source) +
                                          ", and the rows of " + name + " are on a device (" + place +
                                          "), from which they are not taken unasked; materialise them first, or set "
                                          "the mode to auto or gpu");
  }
  if (!can(where)) return no_variant("for " + place + ", where its rows are; materialise them first");
  const auto device = knowledge_.device(session_, where);
  if (!device) {
    return failure(Code::Unavailable,
                   "the rows of " + name + " are said to be on " + place + ": " + device.error().message);
  }
  return on_device(where, *device, Reason::Resident, "they are on " + place + " and stay there");
}

Result<Choice> Chooser::asked_cpu() {
  const std::string asked = std::string("cpu was asked for by ") + asked_by(question_.wishes.source);
  if (!can(Backend::Cpu)) return no_variant("for the processor, and " + asked + "; set the mode to auto or gpu");
  return made(Backend::Cpu, 0, Reason::Asked, asked);
}

// The first that is here of the devices that there is a variant for, however few rows there are.
Result<Choice> Chooser::any_device(Reason reason, const std::string& text) {
  bool any = false;
  for (const Backend backend : options_.devices) {
    if (!can(backend)) {
      miss(backend, "there is no variant for it" + determinism_text(options_));
      continue;
    }
    any = true;
    const auto device = knowledge_.device(session_, backend);
    if (device) return on_device(backend, *device, reason, text);
    miss(backend, device.error().message);
  }
  if (options_.devices.empty()) missing_ = "RuntimeOptions::devices allows none";
  const std::string what_next =
      can(Backend::Cpu) ? "set the mode to auto or cpu, or see to what is missing" : "see to what is missing";
  return failure(any ? Code::Unavailable : Code::Unsupported,
                 text + ", and " + question_.name + " cannot run on a device: " + missing_ + "; " + what_next);
}

Result<Choice> Chooser::weighed() {
  if (!can(Backend::Cpu)) return any_device(Reason::OnlyVariant, "there is no variant for the processor");
  bool any = false;
  Crossover least;
  for (const Backend backend : options_.devices) {
    if (!can(backend)) continue;
    any = true;
    Crossover from = least_crossover(backend);
    if (at_least(from.rows)) {
      const auto device = knowledge_.device(session_, backend);
      if (!device) {
        miss(backend, device.error().message);
        continue;
      }
      from = crossover(backend, *device);
      if (at_least(from.rows)) {
        Choice choice = on_device(backend, *device, Reason::LargeEnough,
                                  "at least the " + std::to_string(from.rows) + " from which on " + to_string(backend) +
                                      " is worth it" + (from.measured ? ", as measured here" : ""));
        choice.decision.crossover = from.rows;
        choice.decision.measured = from.measured;
        return choice;
      }
    }
    if (from.rows <= least.rows) least = from;
  }
  if (!missing_.empty()) {
    Choice choice = made(Backend::Cpu, 0, Reason::NoDevice, "enough for a device, and none is here: " + missing_);
    choice.decision.fallback = true;
    return choice;
  }
  if (any) {
    Choice choice = made(Backend::Cpu, 0, Reason::TooSmall, too_small_text(least));
    choice.decision.crossover = least.rows;
    choice.decision.measured = least.measured;
    return choice;
  }
  const bool left_out = can(Backend::OpenCl, false) || can(Backend::Cuda, false);
  if (!left_out) return made(Backend::Cpu, 0, Reason::OnlyVariant, "there is a variant for the processor alone");
  return made(Backend::Cpu, 0, Reason::NoVariant,
              "there is no variant for a device that may be used" + determinism_text(options_));
}

bool Chooser::can(Backend backend, bool deterministic) const {
  return std::all_of(question_.operations.begin(), question_.operations.end(), [&](const Operation* operation) {
    return std::any_of(operation->begin(), operation->end(),
                       [&](const Variant& variant) { return usable(variant, backend, deterministic); });
  });
}

bool Chooser::at_least(std::uint64_t rows) {
  if (question_.request.rows >= rows) {
    low_ = std::max(low_, rows);
    return true;
  }
  high_ = std::min(high_, rows);
  return false;
}

// Of several operations the largest: from there on none of them is slower on the device.
Crossover Chooser::least_crossover(Backend backend) {
  Crossover largest{0, true};
  for (const Operation* operation : question_.operations) {
    Crossover least;
    for (const Variant& variant : *operation) {
      if (!usable(variant, backend, options_.deterministic)) continue;
      const Crossover its = knowledge_.likely_crossover(session_, *operation, variant);
      if (its.rows <= least.rows) least = its;
    }
    largest = {std::max(largest.rows, least.rows), largest.measured && least.measured};
  }
  return largest;
}

Crossover Chooser::crossover(Backend backend, const DeviceInfo& device) {
  Crossover largest{0, true};
  for (const Operation* operation : question_.operations) {
    const Precision planned = planned_precision(operation->precision(), device.fp64_ratio);
    const Variant* variant = variant_of(*operation, backend, planned, options_.deterministic);
    const Crossover its = knowledge_.crossover(session_, *operation, *variant);
    largest = {std::max(largest.rows, its.rows), largest.measured && its.measured};
  }
  return largest;
}

Choice Chooser::on_device(Backend backend, const DeviceInfo& device, Reason reason, std::string text) {
  Choice choice = made(backend, device.fp64_ratio, reason, std::move(text));
  choice.decision.device = device.name;
  return choice;
}

Choice Chooser::made(Backend backend, unsigned fp64_ratio, Reason reason, std::string text) {
  const Operation& first = *question_.operations.front();
  Choice choice;
  Decision& decision = choice.decision;
  decision.operation = &first;
  decision.variant =
      variant_of(first, backend, planned_precision(first.precision(), fp64_ratio), options_.deterministic);
  decision.requested = question_.wishes.mode;
  decision.source = question_.wishes.source;
  decision.selected = backend;
  decision.precision = decision.variant->precision;
  decision.reason = reason;
  decision.text = std::move(text);
  decision.residency = question_.request.residency;
  choice.low = low_;
  choice.high = high_;
  return choice;
}

Error Chooser::no_variant(const std::string& what) const {
  return failure(Code::Unsupported,
                 std::string(question_.name) + " has no variant" + determinism_text(options_) + " " + what);
}

void Chooser::miss(Backend backend, const std::string& why) {
  missing_ += (missing_.empty() ? "" : "; ") + std::string(to_string(backend)) + ": " + why;
}

}  // namespace

const Variant* variant_of(const Operation& operation, Backend backend, Precision planned, bool deterministic) {
  const Variant* best = nullptr;
  for (const Variant& variant : operation) {
    if (!usable(variant, backend, deterministic)) continue;
    if (variant.precision == planned) return &variant;
    const bool better = best == nullptr || (variant.precision == Precision::Fp64 && best->precision != Precision::Fp64);
    if (better) best = &variant;
  }
  return best;
}

std::string determinism_text(const RuntimeOptions& options) {
  return options.deterministic ? " that is deterministic (which was asked for)" : "";
}

Result<Choice> choose(const Question& question, const RuntimeOptions& options, Session& session, Knowledge& knowledge) {
  return Chooser(question, options, session, knowledge).choose();
}

}  // namespace kiln::runtime
