// SPDX-License-Identifier: Apache-2.0
#include <kiln/runtime/decision.hpp>
#include <kiln/runtime/memory.hpp>
#include <kiln/runtime/mode.hpp>
#include <kiln/runtime/operation.hpp>

#include "base/enum_names.hpp"

namespace kiln::runtime {

const char* to_string(Mode mode) { return enum_name<Mode::Gpu>(mode, {"auto", "cpu", "gpu"}); }

std::optional<Mode> parse_mode(std::string_view text) {
  for (const Mode mode : {Mode::Auto, Mode::Cpu, Mode::Gpu}) {
    if (text == to_string(mode)) return mode;
  }
  return std::nullopt;
}

const char* to_string(Backend backend) { return enum_name<Backend::Cuda>(backend, {"cpu", "opencl", "cuda"}); }

const char* to_string(SettingSource source) {
  return enum_name<SettingSource::Default>(source, {"override", "environment", "default"});
}

const char* to_string(Robustness robustness) {
  return enum_name<Robustness::Bounded>(robustness, {"exact", "bounded"});
}

const char* to_string(Precision precision) { return enum_name<Precision::Mixed>(precision, {"fp64", "fp32", "mixed"}); }

const char* to_string(Determinism determinism) {
  return enum_name<Determinism::Unordered>(determinism, {"deterministic", "unordered"});
}

const char* to_string(PrecisionClass precision) {
  return enum_name<PrecisionClass::Constructive>(precision, {"predicate", "metric", "coarse", "constructive"});
}

const char* to_string(PrecisionPolicy policy) { return enum_name<PrecisionPolicy::Fp64>(policy, {"auto", "fp64"}); }

std::optional<PrecisionPolicy> parse_precision_policy(std::string_view text) {
  for (const PrecisionPolicy policy : {PrecisionPolicy::Auto, PrecisionPolicy::Fp64}) {
    if (text == to_string(policy)) return policy;
  }
  return std::nullopt;
}

const char* to_string(Reason reason) {
  return enum_name<Reason::Failed>(reason, {"requested", "resident", "above crossover", "below crossover", "no device",
                                            "no variant", "only variant", "failed"});
}

const char* to_string(MemoryTier tier) {
  return enum_name<MemoryTier::Plain>(tier, {"pool", "retrying_pool", "managed", "plain"});
}

std::optional<MemoryTier> parse_memory_tier(std::string_view text) {
  for (const MemoryTier tier : {MemoryTier::Pool, MemoryTier::RetryingPool, MemoryTier::Managed, MemoryTier::Plain}) {
    if (text == to_string(tier)) return tier;
  }
  return std::nullopt;
}

}  // namespace kiln::runtime
