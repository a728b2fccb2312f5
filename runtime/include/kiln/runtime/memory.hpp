#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <kiln/event.hpp>
#include <kiln/export.hpp>
#include <kiln/launch.hpp>
#include <kiln/result.hpp>
#include <kiln/session.hpp>

namespace kiln::runtime {

/// The source of CUDA memory; docs/memory.md.
enum class MemoryTier : unsigned char {
  Pool,          ///< A: a stream-ordered pool that kiln creates
  RetryingPool,  ///< B: the same; under memory pressure the program is asked to free memory
  Managed,       ///< C: managed memory, for data that is larger than device memory
  Plain,         ///< available in every driver; the fallback of the other tiers
};
KILN_API const char* to_string(MemoryTier tier);

/// Options of a Memory.
struct MemoryOptions {
  MemoryTier tier = MemoryTier::Pool;
  /// Size limit of each device's pool in bytes; 0 means unlimited. Managed and plain memory ignore it.
  std::uint64_t limit = 0;
  /// RetryingPool: frees memory of the program so that `wanted` bytes become available. Returns false if there is
  /// nothing more to free. kiln calls it at most 3 times for one allocation, on the allocating thread; several threads
  /// can call it concurrently. It can release and allocate memory of the session; kiln does not call it
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
  /// `event_callback`.
  void set_event_callback(EventCallback listeners) const;

  /// Returns the tier in use; before the first allocation, the requested tier. With several devices, returns plain if
  /// one of them fell back.
  MemoryTier tier() const;
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

/// Returns the name of the tier in use: "pool", "retrying pool", "managed", "plain".
KILN_API std::string memory_tier_name(const Memory& memory);

}  // namespace kiln::runtime
