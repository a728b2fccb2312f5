#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <kiln/runtime/runtime.hpp>

#include "runtime/dispatch/effective_settings.hpp"
#include "runtime/dispatch/machine_info_cache.hpp"

namespace kiln::runtime {

/// A query for one backend that all of these operations can use.
struct DispatchQuery {
  const char* name;  ///< name of the operation or the workflow
  std::span<const Operation* const> operations;
  DispatchRequest request;
  EffectiveSettings requests;
};

/// A decision without its id, and the range of row counts for which it is valid: `low` <= rows < `high`.
struct CachedDecision {
  Decision decision;
  std::uint64_t low = 0;
  std::uint64_t high = kNoCrossover;
};

/// Returns the variant of a backend with the planned precision, otherwise the one in double precision, otherwise the
/// first. Considers only deterministic variants if `deterministic` is set. Returns null if there is none.
const Variant* variant_of(const Operation& operation, Backend backend, Precision planned, bool deterministic);

/// Returns " that is deterministic (as requested)" for a message, or an empty string.
std::string determinism_text(const EffectiveSettings& settings);

/// Selects a backend. Opens a driver only if the result depends on it.
Result<CachedDecision> select_backend(const DispatchQuery& question, const RuntimeOptions& options, Session& session,
                                      MachineInfoCache& knowledge);

}  // namespace kiln::runtime
