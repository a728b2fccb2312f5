#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/target.hpp>

namespace kiln {

struct Flight;

/// Finds flights by what they are for. Readers take no lock; writers are kept apart by whoever owns it. Nothing is ever
/// removed, and a table that was outgrown is kept for those who may still be reading it: no more than is in use.
class FlightIndex {
 public:
  FlightIndex();
  ~FlightIndex();
  FlightIndex(const FlightIndex&) = delete;
  FlightIndex& operator=(const FlightIndex&) = delete;

  /// Any thread, any time.
  Flight* find(const Digest& identity, const Target& target) const;
  /// One thread at a time. The flight has its identity, and none with the same identity and target is there.
  void insert(Flight& flight);

 private:
  struct Table;

  std::atomic<const Table*> table_;
  std::vector<std::unique_ptr<Table>> tables_;  // the last is in use
  std::size_t size_ = 0;
};

}  // namespace kiln
