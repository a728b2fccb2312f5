#pragma once

#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include <kiln/status.hpp>

#include "base/mutex.hpp"
#include "base/read_index.hpp"
#include "warm/engine.hpp"

namespace kiln {

/// Somebody who waits for a flight, on his own stack. He has his answer once `outcome` is set, whatever becomes of the
/// flight before he wakes.
struct Waiter {
  std::optional<Result<const Answer*>> outcome;
};

/// What has become of one order. It lives as long as its engine, whose mutex guards all that is not constant or atomic.
struct Flight {
  using Stage = UnitStatus::State;

  Flight(const Order& what, std::uint64_t its_number) : order(what), number(its_number) {}

  const Order order;
  const std::uint64_t number;                  // in the order of submission, from one
  std::optional<Digest> identity;              // the unit's; constant from when the flight is in the index on
  std::atomic<const Answer*> answer{nullptr};  // for those who take no lock: set while it is Ready

  Stage stage = Stage::Cancelled;
  Priority priority = Priority::Background;
  std::list<Flight*>::iterator place;    // in its queue, while it is Queued, else among those that are not
  std::unique_ptr<const Answer> landed;  // behind `answer`
  std::optional<Error> error;            // of one that Failed …
  std::unique_ptr<const Recipe> recipe;  // … and what it was made from, to see whether that has changed
  std::uint64_t landings = 0;            // how often it has come to an end
  std::chrono::nanoseconds submitted{0};
  std::chrono::nanoseconds asked{0};  // when what it is queued or runs for was wanted
  std::chrono::nanoseconds began{0};
  std::chrono::nanoseconds ended{0};
  std::stop_source stop;          // of the run that it is on
  bool is_ending = false;         // that run was cancelled …
  std::optional<Priority> again;  // … and ordered anew before it had ended
  std::vector<Waiter*> waiters;
  std::vector<Flight*> followers;  // for the same request, parked until this one has landed
  Condition woken;
};

/// All flights whose unit has been hashed, for those who take no lock.
class FlightIndex {
 public:
  Flight* find(const Digest& identity, const Target& target) const {
    return index_.find(hash(identity), [&](const Flight& flight) {
      return *flight.identity == identity && flight.order.target == target;
    });
  }
  /// One thread at a time. The flight has its identity, and none with the same identity and target is there.
  void insert(Flight& flight) { index_.insert(hash(*flight.identity), flight); }

 private:
  static std::size_t hash(const Digest& identity) { return std::hash<Digest>()(identity); }
  ReadIndex<Flight> index_;
};

}  // namespace kiln
