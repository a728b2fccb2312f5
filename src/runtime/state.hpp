#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <kiln/runtime/runtime.hpp>

#include "base/mutex.hpp"
#include "runtime/choose.hpp"
#include "runtime/frame.hpp"
#include "runtime/knowledge.hpp"
#include "runtime/wishes.hpp"

namespace kiln::runtime {

/// Decisions and runs are numbered together, so that no two of a process have one number.
std::uint64_t next_number();

/// What copies of a runtime share. No lock is held while the session, a listener or a needs is called.
struct Runtime::State {
  State(Session its_session, RuntimeOptions its_options);

  /// What is in force: the environment is read at the first need.
  Wishes wishes();
  void set_mode(std::optional<Mode> to);
  void set_rewrites(std::optional<bool> to);

  /// A decision of its own, told and counted.
  Result<Decision> decide(const char* name, std::span<const Operation* const> operations, const Request& request);
  /// The decision of a workflow, for an operation or another workflow inside of it.
  Result<Decision> follow(const Frame& frame, const char* name, std::span<const Operation* const> operations,
                          const Request& request);

  /// The common fields of an event about a decision.
  static Event event_of(Event::Kind kind, const char* name, const Decision& decision);
  void tell_of_fallback(const char* name, const Decision& decision, const std::string& message);

  Session session;
  const RuntimeOptions options;
  Knowledge knowledge;

  std::atomic<std::uint64_t> decisions{0};
  std::atomic<std::uint64_t> dispatches{0};
  std::atomic<std::uint64_t> on_device{0};
  std::atomic<std::uint64_t> fallbacks{0};

  Mutex mutex;
  std::vector<StageTime> last_stages KILN_GUARDED_BY(mutex);

 private:
  using KeptKey = std::tuple<std::vector<const Operation*>, Residency, Backend>;

  Environment environment();
  /// The environment is read again, and with it the mode: no decision is kept.
  void start_anew() KILN_REQUIRES(mutex);
  Result<Decision> choice(const Question& question);
  std::optional<Decision> kept(const KeptKey& key, std::uint64_t rows);
  bool is_warm(const Decision& decision, std::span<const Operation* const> operations);
  /// The first that has no variant for a backend; null where each has.
  const Operation* first_without(Backend backend, std::span<const Operation* const> operations);
  const Variant* variant_on(Backend backend, const Operation& operation);

  std::optional<Mode> mode_ KILN_GUARDED_BY(mutex);
  std::optional<bool> rewrites_ KILN_GUARDED_BY(mutex);
  std::optional<Environment> environment_ KILN_GUARDED_BY(mutex);
  std::uint64_t generation_ KILN_GUARDED_BY(mutex) = 0;
  std::map<KeptKey, std::vector<Choice>> kept_ KILN_GUARDED_BY(mutex);
};

}  // namespace kiln::runtime
