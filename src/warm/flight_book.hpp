#pragma once

#include <array>
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "warm/flight.hpp"
#include "warm/glance.hpp"

namespace kiln {

/// All flights of an engine, and in which queue those are that wait for a thread. Its owner keeps callers apart. Only
/// what makes a flight known needs memory: no run is lost or hangs because it could not be queued.
class FlightBook {
 public:
  /// The index is written by this book alone; anyone may read it.
  FlightBook(FlightIndex& index, std::size_t most_queued) : index_(index), most_queued_(most_queued) {}

  /// By number: in the order of submission.
  const std::map<std::uint64_t, std::unique_ptr<Flight>>& flights() const { return flights_; }
  bool full() const { return queues_[0].size() + queues_[1].size() >= most_queued_; }

  /// The flight of an order, by its unit's identity where that is known and by its address otherwise; null: none.
  Flight* find(const Order& order);
  /// A flight for an order that has none.
  Flight& add(const Order& order, std::chrono::nanoseconds now);
  /// Puts a flight with a hashed unit where it can be found. Where another is there for an equal unit, that one stays,
  /// queued in its place if need be, and this one, which nobody can be waiting for, is gone.
  Flight& identify(Flight& flight);
  /// Does so with all that do not run and whose unit has been hashed meanwhile.
  void identify_hashed();
  /// The units of these names by which `find` does not know a flight yet.
  std::vector<Unit> not_hashed(const std::unordered_set<std::string_view>& names) const;

  /// Queues a flight that is neither queued nor running.
  void enqueue(Flight& flight, Priority priority);
  /// Moves a queued one to those that somebody waits for.
  void promote(Flight& flight);
  /// Takes a queued one out of its queue.
  void withdraw(Flight& flight);
  /// The next to run of this priority, now Running; null where there is none.
  Flight* take(Priority priority, std::chrono::nanoseconds now);
  /// How many units of the same kind are queued for the same target. Nobody needs to know more than a handful, nor
  /// looks at more than the next few hundred.
  std::size_t company(const Flight& flight) const;

 private:
  // One that is neither queued nor known by its identity or address.
  void remove(Flight& flight);
  std::list<Flight*>& queue(Priority priority) { return queues_[static_cast<std::size_t>(priority)]; }

  FlightIndex& index_;
  const std::size_t most_queued_;
  std::map<std::uint64_t, std::unique_ptr<Flight>> flights_;
  std::uint64_t numbers_ = 0;
  std::array<std::list<Flight*>, static_cast<std::size_t>(Priority::Waited) + 1> queues_;  // by priority
  std::list<Flight*> not_queued_;
  // Not identified yet, by the unit's address. The flight keeps its unit, so the address stays its own.
  std::unordered_multimap<const void*, Flight*> unhashed_;
};

/// All flights of a book at this moment.
SessionStatus status_of(const FlightBook& book, std::chrono::nanoseconds now);
/// The sums of all, and the `most` that one who watches wants to see first.
Glance glance_at(const FlightBook& book, std::chrono::nanoseconds now, std::size_t most);

}  // namespace kiln
