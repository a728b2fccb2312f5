#include <kiln/runtime/decision.hpp>
#include <kiln/runtime/memory.hpp>
#include <kiln/runtime/mode.hpp>
#include <kiln/runtime/operation.hpp>

#include "base/named.hpp"

namespace kiln::runtime {

const char* to_string(Mode mode) { return name_of<Mode::Gpu>(mode, {"auto", "cpu", "gpu"}); }

std::optional<Mode> parse_mode(std::string_view text) {
  for (const Mode mode : {Mode::Auto, Mode::Cpu, Mode::Gpu}) {
    if (text == to_string(mode)) return mode;
  }
  return std::nullopt;
}

const char* to_string(Backend backend) { return name_of<Backend::Cuda>(backend, {"cpu", "opencl", "cuda"}); }

const char* to_string(Source source) {
  return name_of<Source::Default>(source, {"override", "environment", "default"});
}

const char* to_string(Robustness robustness) { return name_of<Robustness::Bounded>(robustness, {"exact", "bounded"}); }

const char* to_string(Precision precision) { return name_of<Precision::Mixed>(precision, {"fp64", "fp32", "mixed"}); }

const char* to_string(Determinism determinism) {
  return name_of<Determinism::Unordered>(determinism, {"deterministic", "unordered"});
}

const char* to_string(PrecisionClass precision) {
  return name_of<PrecisionClass::Coarse>(precision, {"predicate", "metric", "coarse"});
}

const char* to_string(Reason reason) {
  return name_of<Reason::Failed>(
      reason, {"asked", "resident", "large enough", "too small", "no device", "no variant", "only variant", "failed"});
}

const char* to_string(MemoryTier tier) {
  return name_of<MemoryTier::Plain>(tier, {"pool", "patient pool", "managed", "plain"});
}

}  // namespace kiln::runtime
