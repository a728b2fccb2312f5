// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <kiln/runtime/events.hpp>
#include <kiln/runtime/runtime.hpp>

#include "base/mutex.hpp"
#include "runtime/dispatch/choose.hpp"
#include "runtime/dispatch/decision_scope.hpp"
#include "runtime/dispatch/effective_settings.hpp"
#include "runtime/dispatch/machine_info_cache.hpp"

namespace kiln::runtime {

/// The state that copies of a runtime share. No lock is held during calls of the session, a callback or a
/// `Requirements`. Thread-safe.
struct Runtime::State {
  State(Session its_session, RuntimeOptions its_options);

  /// Returns the effective settings. Reads the environment at first use.
  EffectiveSettings requests();
  /// Sets or removes an override of the program. Discards cached decisions and reads the environment again.
  template <class T>
  void set(std::optional<T> RequestedSettings::*setting, std::optional<T> to) {
    const MutexLock lock(mutex);
    overrides_.*setting = to;
    reset();
  }

  /// Makes a new decision, emits its event and counts it.
  Result<Decision> decide(const char* name, std::span<const Operation* const> operations,
                          const DispatchRequest& request);
  /// Returns the decision of an enclosing scope for an operation or workflow inside it.
  Result<Decision> inherit(const DecisionScope& frame, const char* name, std::span<const Operation* const> operations,
                           const DispatchRequest& request);

  /// Returns an event with the common fields of a decision.
  static Event event_of(const EventType& type, const char* name, const Decision& decision);
  /// Adds the details about the precision: those of the decision's first operation.
  static void add_precision(Event& event, const Decision& decision);
  void emit_fallback(const char* name, const Decision& decision, const std::string& message);

  Session session;
  const bool cpu_is_listed;      ///< in the program's options, as a device
  const RuntimeOptions options;  ///< without the CPU as a device
  MachineInfoCache knowledge;

  std::atomic<std::uint64_t> decisions{0};
  std::atomic<std::uint64_t> dispatches{0};
  std::atomic<std::uint64_t> on_device{0};
  std::atomic<std::uint64_t> on_gpu{0};
  std::atomic<std::uint64_t> fallbacks{0};

  Mutex mutex;
  std::vector<StageTime> last_stages KILN_GUARDED_BY(mutex);

 private:
  using DecisionCacheKey = std::tuple<std::vector<const Operation*>, Residency, Backend>;

  EnvironmentSettings environment();
  /// Makes the next use read the environment again and clears the cached decisions.
  void reset() KILN_REQUIRES(mutex);
  Result<Decision> choice(const DispatchQuery& question);
  std::optional<Decision> cached_decision(const DecisionCacheKey& key, std::uint64_t rows);
  bool is_warm(const Decision& decision, std::span<const Operation* const> operations,
               const EffectiveSettings& settings);

  RequestedSettings overrides_ KILN_GUARDED_BY(mutex);
  std::optional<EnvironmentSettings> environment_ KILN_GUARDED_BY(mutex);
  std::uint64_t generation_ KILN_GUARDED_BY(mutex) = 0;
  std::map<DecisionCacheKey, std::vector<CachedDecision>> decision_cache_ KILN_GUARDED_BY(mutex);
};

}  // namespace kiln::runtime
