// SPDX-License-Identifier: Apache-2.0
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

/// Returns the precision that the plan asks for on a device with this fp64 ratio.
Precision planned_precision(const Operation& operation, unsigned fp64_ratio, const EffectiveSettings& settings);

/// Returns the variant of a backend with the planned precision, otherwise the one in double precision, otherwise the
/// first. Considers only the variants that the settings and the class of the operation allow: deterministic ones, those
/// in fp64. Returns null if there is none; the fp64 ratio has no influence on that.
const Variant* variant_of(const Operation& operation, Backend backend, unsigned fp64_ratio,
                          const EffectiveSettings& settings);

/// Returns the first operation without a variant that `variant_of` would return; null if each has one.
const Operation* first_without(std::span<const Operation* const> operations, Backend backend,
                               const EffectiveSettings& settings);

/// Returns which variants the settings and the classes of the operations leave out, for a message after "no variant":
/// " in fp64 (as requested) that is deterministic (as requested)". Returns an empty string if they leave none out.
std::string restriction_text(std::span<const Operation* const> operations, const EffectiveSettings& settings);

/// Selects a backend. Opens a driver only if the result depends on it.
Result<CachedDecision> select_backend(const DispatchQuery& question, const RuntimeOptions& options, Session& session,
                                      MachineInfoCache& knowledge);

}  // namespace kiln::runtime
