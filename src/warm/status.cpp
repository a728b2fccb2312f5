#include <kiln/status.hpp>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/named.hpp"
#include "warm/flight_book.hpp"

namespace kiln {
namespace {

using State = UnitStatus::State;

double milliseconds(std::chrono::nanoseconds time) { return std::chrono::duration<double, std::milli>(time).count(); }

bool is_pending(const Flight& flight) { return flight.stage == State::Queued || flight.stage == State::Running; }

UnitStatus status_of(const Flight& flight) {
  UnitStatus unit{flight.order.unit.label(), flight.order.unit.kind(), flight.order.target.name(), flight.stage};
  if (flight.stage == State::Ready) unit.origin = flight.landed->origin;
  if (flight.stage == State::Failed) unit.error = flight.error->message;
  if (flight.stage == State::Ready || flight.stage == State::Failed) {
    unit.ms = milliseconds(flight.ended - flight.began);
  }
  if (const Digest* known = flight.order.unit.known_identity()) unit.identity = *known;
  return unit;
}

std::size_t& sum_of(SessionStatus& status, const Flight& flight) {
  switch (flight.stage) {
    case State::Ready: return flight.landed->origin == Origin::Compiled ? status.compiled : status.found;
    case State::Failed: return status.failed;
    case State::Cancelled: return status.cancelled;
    case State::Queued:
    case State::Running: break;
  }
  return status.pending;
}

// Without any texts: there may be ten thousand flights, and the engine's lock is held.
SessionStatus sums_of(const FlightBook& book, std::chrono::nanoseconds now) {
  SessionStatus sums;
  std::chrono::nanoseconds first = std::chrono::nanoseconds::max();
  std::chrono::nanoseconds last{0};
  for (const auto& [number, flight] : book.flights()) {
    ++sum_of(sums, *flight);
    first = std::min(first, flight->submitted);
    last = std::max(last, is_pending(*flight) ? now : flight->ended);
  }
  sums.submitted = book.flights().size();
  if (last > first) sums.wall_ms = milliseconds(last - first);
  return sums;
}

// What one who watches wants to see first.
int rank_of(const Flight& flight) {
  if (flight.stage == State::Running) return 0;
  if (!flight.waiters.empty()) return 1;
  if (flight.stage == State::Failed) return 2;
  if (flight.stage == State::Queued) return 3;
  return flight.stage == State::Ready ? 4 : 5;
}

bool comes_before(const Flight* a, const Flight* b) {
  const int rank = rank_of(*a);
  if (rank != rank_of(*b)) return rank < rank_of(*b);
  if (rank == 4 && a->ended != b->ended) return a->ended > b->ended;
  return a->number < b->number;
}

}  // namespace

const char* to_string(UnitStatus::State state) {
  return name_of<State::Cancelled>(state, {"queued", "running", "ready", "failed", "cancelled"});
}

SessionStatus status_of(const FlightBook& book, std::chrono::nanoseconds now) {
  SessionStatus status = sums_of(book, now);
  for (const auto& [number, flight] : book.flights()) status.units.push_back(status_of(*flight));
  return status;
}

Glance glance_at(const FlightBook& book, std::chrono::nanoseconds now, std::size_t most) {
  Glance glance{sums_of(book, now)};
  std::vector<const Flight*> flights;
  flights.reserve(book.flights().size());
  for (const auto& [number, flight] : book.flights()) {
    glance.waiters += flight->waiters.size();
    flights.push_back(flight.get());
  }
  const auto end = flights.begin() + static_cast<std::ptrdiff_t>(std::min(most, flights.size()));
  std::partial_sort(flights.begin(), end, flights.end(), comes_before);
  for (auto flight = flights.begin(); flight != end; ++flight) {
    glance.units.push_back({status_of(**flight), (*flight)->waiters.size()});
    if ((*flight)->stage == State::Running) glance.units.back().status.ms = milliseconds(now - (*flight)->began);
  }
  return glance;
}

}  // namespace kiln
