#include <kiln/status.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

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
  return unit;
}

std::size_t& sum_of(SessionStatus& status, const UnitStatus& unit) {
  switch (unit.state) {
    case State::Ready: return unit.origin == Origin::Compiled ? status.compiled : status.found;
    case State::Failed: return status.failed;
    case State::Cancelled: return status.cancelled;
    case State::Queued:
    case State::Running: break;
  }
  return status.pending;
}

}  // namespace

const char* to_string(UnitStatus::State state) {
  switch (state) {
    case State::Queued: return "queued";
    case State::Running: return "running";
    case State::Ready: return "ready";
    case State::Failed: return "failed";
    case State::Cancelled: return "cancelled";
  }
  return "unknown";
}

SessionStatus status_of(const FlightBook& book, std::chrono::nanoseconds now) {
  SessionStatus status;
  std::chrono::nanoseconds first = std::chrono::nanoseconds::max();
  std::chrono::nanoseconds last{0};
  for (const auto& [number, flight] : book.flights()) {
    status.units.push_back(status_of(*flight));
    ++sum_of(status, status.units.back());
    first = std::min(first, flight->submitted);
    last = std::max(last, is_pending(*flight) ? now : flight->ended);
  }
  status.submitted = status.units.size();
  if (last > first) status.wall_ms = milliseconds(last - first);
  return status;
}

}  // namespace kiln
