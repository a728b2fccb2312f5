#include <kiln/runtime/decision.hpp>
#include <kiln/runtime/memory.hpp>
#include <kiln/runtime/mode.hpp>
#include <kiln/runtime/operation.hpp>

namespace kiln::runtime {

const char* to_string(Mode mode) {
  switch (mode) {
    case Mode::Auto: return "auto";
    case Mode::Cpu: return "cpu";
    case Mode::Gpu: return "gpu";
  }
  return "unknown";
}

std::optional<Mode> parse_mode(std::string_view text) {
  for (const Mode mode : {Mode::Auto, Mode::Cpu, Mode::Gpu}) {
    if (text == to_string(mode)) return mode;
  }
  return std::nullopt;
}

const char* to_string(Backend backend) {
  switch (backend) {
    case Backend::Cpu: return "cpu";
    case Backend::OpenCl: return "opencl";
    case Backend::Cuda: return "cuda";
  }
  return "unknown";
}

const char* to_string(Source source) {
  switch (source) {
    case Source::Override: return "override";
    case Source::Environment: return "environment";
    case Source::Default: return "default";
  }
  return "unknown";
}

const char* to_string(Robustness robustness) {
  switch (robustness) {
    case Robustness::Exact: return "exact";
    case Robustness::Bounded: return "bounded";
  }
  return "unknown";
}

const char* to_string(Precision precision) {
  switch (precision) {
    case Precision::Fp64: return "fp64";
    case Precision::Fp32: return "fp32";
    case Precision::Mixed: return "mixed";
  }
  return "unknown";
}

const char* to_string(Determinism determinism) {
  switch (determinism) {
    case Determinism::Deterministic: return "deterministic";
    case Determinism::Unordered: return "unordered";
  }
  return "unknown";
}

const char* to_string(PrecisionClass precision) {
  switch (precision) {
    case PrecisionClass::Predicate: return "predicate";
    case PrecisionClass::Metric: return "metric";
    case PrecisionClass::Coarse: return "coarse";
  }
  return "unknown";
}

const char* to_string(Reason reason) {
  switch (reason) {
    case Reason::Asked: return "asked";
    case Reason::Resident: return "resident";
    case Reason::LargeEnough: return "large enough";
    case Reason::TooSmall: return "too small";
    case Reason::NoDevice: return "no device";
    case Reason::NoVariant: return "no variant";
    case Reason::OnlyVariant: return "only variant";
    case Reason::Failed: return "failed";
  }
  return "unknown";
}

const char* to_string(MemoryTier tier) {
  switch (tier) {
    case MemoryTier::Pool: return "pool";
    case MemoryTier::PatientPool: return "patient pool";
    case MemoryTier::Managed: return "managed";
    case MemoryTier::Plain: return "plain";
  }
  return "unknown";
}

}  // namespace kiln::runtime
