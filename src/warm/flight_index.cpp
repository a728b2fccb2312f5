#include "warm/flight_index.hpp"

#include <cstring>

#include "warm/flight.hpp"

namespace kiln {

// Open addressing with a power of two of places, never more than half of them taken: a probe ends soon.
struct FlightIndex::Table {
  explicit Table(std::size_t places) : mask(places - 1), flights(places) {}

  static std::size_t hash(const Digest& identity) {
    std::size_t prefix;
    std::memcpy(&prefix, identity.bytes.data(), sizeof prefix);
    return prefix;
  }
  void put(Flight& flight) {
    std::size_t at = hash(*flight.identity) & mask;
    while (flights[at].load(std::memory_order_relaxed) != nullptr) at = (at + 1) & mask;
    flights[at].store(&flight, std::memory_order_release);
  }

  const std::size_t mask;
  std::vector<std::atomic<Flight*>> flights;
};

FlightIndex::FlightIndex() {
  tables_.push_back(std::make_unique<Table>(64));
  table_.store(tables_.back().get(), std::memory_order_release);
}

FlightIndex::~FlightIndex() = default;

Flight* FlightIndex::find(const Digest& identity, const Target& target) const {
  const Table& table = *table_.load(std::memory_order_acquire);
  for (std::size_t at = Table::hash(identity) & table.mask;; at = (at + 1) & table.mask) {
    Flight* const flight = table.flights[at].load(std::memory_order_acquire);
    if (flight == nullptr) return nullptr;
    if (*flight->identity == identity && flight->order.target == target) return flight;
  }
}

void FlightIndex::insert(Flight& flight) {
  Table* table = tables_.back().get();
  if (2 * (size_ + 1) > table->mask + 1) {
    auto larger = std::make_unique<Table>(2 * (table->mask + 1));
    for (const std::atomic<Flight*>& place : table->flights) {
      if (Flight* known = place.load(std::memory_order_relaxed)) larger->put(*known);
    }
    tables_.push_back(std::move(larger));
    table = tables_.back().get();
    table_.store(table, std::memory_order_release);
  }
  table->put(flight);
  ++size_;
}

}  // namespace kiln
