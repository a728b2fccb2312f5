#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <kiln/event.hpp>
#include <kiln/export.hpp>
#include <kiln/launch.hpp>
#include <kiln/session.hpp>

namespace kiln::runtime {

/// Where CUDA memory comes from; docs/memory.md.
enum class MemoryTier : unsigned char {
  Pool,         ///< A: a stream-ordered pool of kiln's own
  PatientPool,  ///< B: the same, and when memory is short somebody is asked to free some
  Managed,      ///< C: managed memory, for data that is larger than the device
  Plain,        ///< what every driver has; also what the others fall back to
};
KILN_API const char* to_string(MemoryTier tier);

struct MemoryOptions {
  MemoryTier tier = MemoryTier::Pool;
  /// Of the pool of each device, in bytes; zero: none. Managed and plain memory know none.
  std::uint64_t limit = 0;
  /// PatientPool: frees something of the program's, so that `wanted` bytes may be had; false: there is nothing more. At
  /// most 3 times for one allocation, in the thread that wants the memory; several threads may be in it at once. It may
  /// release and allocate memory of the session, and is not asked again for what it allocates itself. It must not
  /// throw.
  std::function<bool(std::size_t wanted)> on_out_of_memory;
  std::string driver;  ///< the path of libcuda; empty for the one that the loader finds
};

/// An allocator for a session's CUDA memory. Copies share one state. Any thread. Making it opens nothing: it is set up
/// by the first allocation, in whose thread a context is current, once for each device. Where that fails it falls back
/// to plain memory, and says so. A forked child gets none.
class KILN_API Memory {
 public:
  explicit Memory(MemoryOptions options = {});

  /// For SessionOptions::allocator.
  Allocator allocator() const;
  /// To whom `memory_set`, `memory_retried` and `memory_trimmed` are told from now on: a session's `listeners`.
  void tell(EventCallback listeners) const;

  /// The tier in force; before the first allocation the one that was asked for. Of several devices: plain where one of
  /// them had to fall back.
  MemoryTier backend() const;
  struct Use {
    std::uint64_t bytes = 0;  ///< allocated and not released, on all devices
    std::uint64_t peak = 0;
    std::uint64_t retries = 0;
    std::uint64_t refusals = 0;  ///< allocations that ended in an error
  };
  Use use() const;
  /// Gives what the pool holds and nobody uses back to the driver.
  Status trim() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

/// A session whose CUDA memory is of that tier, with the events of both in one trace.
KILN_API Result<Session> open_session(SessionOptions options, const Memory& memory);

/// Which memory is in force, in a word: "pool", "patient pool", "managed", "plain".
KILN_API std::string memory_backend(const Memory& memory);

}  // namespace kiln::runtime
