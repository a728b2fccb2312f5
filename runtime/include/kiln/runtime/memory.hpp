// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <kiln/event.hpp>
#include <kiln/export.hpp>
#include <kiln/launch.hpp>
#include <kiln/result.hpp>
#include <kiln/runtime/mode.hpp>
#include <kiln/session.hpp>

namespace kiln::runtime {

/// The source of CUDA memory; docs/explanation/runtime-model.md.
enum class MemoryTier : unsigned char {
  Pool,          ///< A: a stream-ordered pool that kiln creates
  RetryingPool,  ///< B: the same; under memory pressure the program is asked to free memory
  Managed,       ///< C: managed memory, for data that is larger than device memory
  Plain,         ///< available in every driver; the fallback of the other tiers
};
KILN_API const char* to_string(MemoryTier tier);
/// Returns the tier, or no value if the text is not `pool`, `retrying_pool`, `managed` or `plain`.
KILN_API std::optional<MemoryTier> parse_memory_tier(std::string_view text);

constexpr unsigned kMaxMemoryRetries = 3;

/// Options of a Memory.
struct MemoryOptions {
  /// Overrides KILN_MEMORY_TIER. The default is a pool.
  std::optional<MemoryTier> tier;
  /// Overrides KILN_MEMORY_LIMIT: the size limit of each device's pool in bytes; 0 means unlimited, which is the
  /// default. Managed and plain memory ignore it.
  std::optional<std::uint64_t> limit;
  /// Overrides KILN_OOM_RETRIES: how often a RetryingPool calls `on_out_of_memory` for one allocation, at most
  /// kMaxMemoryRetries, which is the default.
  std::optional<unsigned> retries;
  /// RetryingPool: frees memory of the program so that `wanted` bytes become available. Returns false if there is
  /// nothing more to free. kiln calls it at most `retries` times for one allocation, on the allocating thread; several
  /// threads can call it concurrently. It can release and allocate memory of the session; kiln does not call it
  /// again for the allocations that it makes. It must not throw.
  std::function<bool(std::size_t wanted)> on_out_of_memory;
  std::string driver;  ///< path of libcuda; empty to use the loader's search path
};

/// An allocator for a session's CUDA memory. Copies share one state. The constructor opens nothing; the first
/// allocation on each device sets the allocator up and needs a current context in its thread. If the setup fails, the
/// allocator falls back to plain memory and emits an event. A forked child cannot allocate. Thread-safe.
class KILN_API Memory {
 public:
  explicit Memory(MemoryOptions options = {});

  /// Returns the allocator for `SessionOptions::allocator`.
  Allocator allocator() const;
  /// Sets the callback for the events `memory_tier_selected`, `allocation_retried` and `memory_trimmed`: a session's
  /// `event_callback`. `enabled` is as `SessionOptions::on_event_enabled`.
  void set_event_callback(EventCallback callback, const std::atomic<bool>* enabled = nullptr) const;

  /// Each setting is the override of the program (MemoryOptions or a setter), else the environment variable, else the
  /// default.
  struct Settings {
    MemoryTier tier = MemoryTier::Pool;
    std::uint64_t limit = 0;
    unsigned retries = kMaxMemoryRetries;
    SettingSource tier_source = SettingSource::Default;
    SettingSource limit_source = SettingSource::Default;
    SettingSource retries_source = SettingSource::Default;
  };
  /// Returns the requested settings, which the next device is set up with.
  Settings settings() const;
  /// Each setter sets or removes an override and reads the environment again. After the first device was set up, it
  /// returns an error and changes nothing.
  Status set_tier(std::optional<MemoryTier> tier) const;
  Status set_limit(std::optional<std::uint64_t> limit) const;
  Status set_retries(std::optional<unsigned> retries) const;

  /// Returns the tier in use; no value before the first allocation, which needs a context. With several devices,
  /// returns plain if one of them fell back.
  std::optional<MemoryTier> tier() const;
  /// Usage counters.
  struct Usage {
    std::uint64_t bytes = 0;  ///< allocated and not released, on all devices
    std::uint64_t peak = 0;   ///< maximum of `bytes`
    std::uint64_t retries = 0;
    std::uint64_t failures = 0;  ///< allocations that failed
  };
  Usage usage() const;
  /// Returns unused memory of the pool to the driver.
  Status trim() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

/// Opens a session with this CUDA memory. The events of both are in one trace.
KILN_API Result<Session> open_session(SessionOptions options, const Memory& memory);

/// Returns the name of the tier in use: "pool", "retrying_pool", "managed", "plain"; "none" before the first
/// allocation.
KILN_API std::string memory_tier_name(const Memory& memory);

}  // namespace kiln::runtime
