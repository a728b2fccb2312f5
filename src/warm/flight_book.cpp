#include "warm/flight_book.hpp"

#include <algorithm>
#include <utility>

namespace kiln {

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
  Flight& flight = *flights_.emplace_hint(flights_.end(), number, std::make_unique<Flight>(order, number))->second;
  flight.submitted = now;
  if (const Digest* identity = order.unit.known_identity()) {
    flight.identity = *identity;
    index_.insert(flight);
  } else {
    unhashed_.emplace(order.unit.address(), &flight);
  }
  return flight;
}

Flight& FlightBook::identify(Flight& flight) {
  if (flight.identity) return flight;
  auto [at, last] = unhashed_.equal_range(flight.order.unit.address());
  while (at->second != &flight) ++at;
  unhashed_.erase(at);
  const Digest& identity = flight.order.unit.identity();
  if (Flight* twin = index_.find(identity, flight.order.target)) {
    if (flight.stage == Flight::Stage::Queued) {
      withdraw(flight);
      if (twin->stage == Flight::Stage::Cancelled) {
        twin->asked = flight.asked;
        enqueue(*twin, flight.priority);
      }
    }
    flights_.erase(flight.number);
    return *twin;
  }
  flight.identity = identity;
  index_.insert(flight);
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
  flight.place = queue(priority).insert(queue(priority).end(), &flight);
}

void FlightBook::promote(Flight& flight) {
  if (flight.priority == Priority::Waited) return;
  withdraw(flight);
  enqueue(flight, Priority::Waited);
}

void FlightBook::withdraw(Flight& flight) {
  queue(flight.priority).erase(flight.place);
  flight.stage = Flight::Stage::Cancelled;
}

Flight* FlightBook::take(Priority priority, std::chrono::nanoseconds now) {
  if (queue(priority).empty()) return nullptr;
  Flight* const flight = queue(priority).front();
  queue(priority).pop_front();
  flight->stage = Flight::Stage::Running;
  flight->stop = std::stop_source();
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
