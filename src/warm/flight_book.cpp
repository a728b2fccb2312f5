#include "warm/flight_book.hpp"

#include <algorithm>
#include <new>

namespace kiln {
namespace {

// Without memory for it, one by which nothing is stopped: the run then goes on to its end.
std::stop_source stop_source() noexcept {
  try {
    return {};
  } catch (const std::bad_alloc&) {
    return std::stop_source(std::nostopstate);
  }
}

}  // namespace

Flight* FlightBook::find(const Order& order) {
  const Digest* identity = order.unit.known_identity();
  if (identity != nullptr) {
    if (Flight* flight = index_.find(*identity, order.target)) return flight;
  }
  const auto [first, last] = unhashed_.equal_range(order.unit.address());
  const auto found =
      std::find_if(first, last, [&](const auto& entry) { return entry.second->order.target == order.target; });
  if (found == last) return nullptr;
  return identity != nullptr ? &identify(*found->second) : found->second;
}

Flight& FlightBook::add(const Order& order, std::chrono::nanoseconds now) {
  const std::uint64_t number = ++numbers_;
  std::list<Flight*> place(1);  // for good: it is moved to a queue and back, which needs no memory
  Flight& flight = *flights_.emplace_hint(flights_.end(), number, std::make_unique<Flight>(order, number))->second;
  flight.submitted = now;
  place.front() = &flight;
  flight.place = place.begin();
  not_queued_.splice(not_queued_.end(), place);
  try {
    if (const Digest* identity = order.unit.known_identity()) {
      flight.identity = *identity;
      index_.insert(flight);
    } else {
      unhashed_.emplace(order.unit.address(), &flight);
    }
  } catch (const std::bad_alloc&) {
    remove(flight);
    throw;
  }
  return flight;
}

void FlightBook::remove(Flight& flight) {
  not_queued_.erase(flight.place);
  flights_.erase(flight.number);
}

Flight& FlightBook::identify(Flight& flight) {
  if (flight.identity) return flight;
  auto [at, last] = unhashed_.equal_range(flight.order.unit.address());
  while (at->second != &flight) ++at;
  const Digest& identity = flight.order.unit.identity();
  if (Flight* twin = index_.find(identity, flight.order.target)) {
    unhashed_.erase(at);
    if (flight.stage == Flight::Stage::Queued) {
      withdraw(flight);
      if (twin->stage == Flight::Stage::Cancelled) {
        twin->asked = flight.asked;
        enqueue(*twin, flight.priority);
      }
    }
    remove(flight);
    return *twin;
  }
  flight.identity = identity;
  try {
    index_.insert(flight);
  } catch (const std::bad_alloc&) {
    flight.identity.reset();  // it is still found by its address
    throw;
  }
  unhashed_.erase(at);
  return flight;
}

void FlightBook::identify_hashed() {
  std::vector<Flight*> hashed;
  for (const auto& [address, flight] : unhashed_) {
    const bool runs = flight->stage == Flight::Stage::Running;  // its thread is about to do this, and holds on to it
    if (!runs && flight->order.unit.known_identity() != nullptr) hashed.push_back(flight);
  }
  for (Flight* flight : hashed) (void)identify(*flight);
}

std::vector<Unit> FlightBook::not_hashed(const std::unordered_set<std::string_view>& names) const {
  std::vector<Unit> units;
  for (const auto& [address, flight] : unhashed_) {
    if (names.contains(flight->order.unit.name())) units.push_back(flight->order.unit);
  }
  return units;
}

void FlightBook::enqueue(Flight& flight, Priority priority) {
  flight.stage = Flight::Stage::Queued;
  flight.priority = priority;
  queue(priority).splice(queue(priority).end(), not_queued_, flight.place);
}

void FlightBook::promote(Flight& flight) {
  if (flight.priority == Priority::Waited) return;
  withdraw(flight);
  enqueue(flight, Priority::Waited);
}

void FlightBook::withdraw(Flight& flight) {
  not_queued_.splice(not_queued_.end(), queue(flight.priority), flight.place);
  flight.stage = Flight::Stage::Cancelled;
}

Flight* FlightBook::take(Priority priority, std::chrono::nanoseconds now) {
  if (queue(priority).empty()) return nullptr;
  Flight* const flight = queue(priority).front();
  not_queued_.splice(not_queued_.end(), queue(priority), flight->place);
  flight->stage = Flight::Stage::Running;
  flight->stop = stop_source();
  flight->is_ending = false;
  flight->began = now;
  return flight;
}

std::size_t FlightBook::company(const Flight& flight) const {
  constexpr std::size_t kMostCompany = 16;
  constexpr std::size_t kMostLooks = 256;
  std::size_t count = 0;
  std::size_t looks = 0;
  for (const auto& queue : queues_) {
    for (const Flight* other : queue) {
      if (count == kMostCompany || ++looks > kMostLooks) return count;
      const Order& order = other->order;
      if (order.unit.kind() == flight.order.unit.kind() && order.target == flight.order.target) ++count;
    }
  }
  return count;
}

}  // namespace kiln
