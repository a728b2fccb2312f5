// What a call pays for a unit that is ready.
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "bench/benchmarks.hpp"
#include "bench/instant_engine.hpp"

namespace kiln::bench {
namespace {

constexpr std::size_t kUnits = 1000;
// Enough for the clock; each is asked for as often as any other.
constexpr std::size_t kCallsPerRound = 10 * kUnits;

// What somebody without kiln would keep: a table by the unit's digest and the target.
struct UnitAndTarget {
  Key unit;
  Target target;
  friend bool operator==(const UnitAndTarget&, const UnitAndTarget&) = default;
};
struct Hash {
  std::size_t operator()(const UnitAndTarget& key) const { return std::hash<Key>()(key.unit); }
};
using Table = std::unordered_map<UnitAndTarget, const Answer*, Hash>;

// Asks for all of them in turn, in an order that no prefetcher knows.
template <class Find>
Result<double> all_in_turn(std::size_t count, const Find& find) {
  constexpr std::size_t kStep = 617;  // prime, and so it comes to each
  std::size_t at = 0;
  std::size_t found = 0;
  const double each = microseconds_each(kCallsPerRound, [&] {
    found += find(at) != nullptr ? 1 : 0;
    at = (at + kStep) % count;
  });
  if (found != kCallsPerRound) return failure(Code::Internal, "a unit that is ready was not found");
  return 1000 * each;
}

}  // namespace

Result<Outcomes> get_recipe() {
  const std::vector<Order> orders = unseen_orders(kUnits, 2000);
  Engine engine(instant_parts());
  engine.request(orders);
  if (!wait_until_idle(engine)) return failure(Code::Internal, "the engine did not come to rest");
  std::vector<UnitAndTarget> keys;
  Table table;
  for (const Order& order : orders) {
    keys.push_back({Key{order.unit.identity()}, order.target});
    table.emplace(keys.back(), engine.ready(order));
  }
  auto outcome = compare(
      {.name = "get_recipe",
       .unit = "ns",
       .limit = 1.5,
       .ours = [&] { return all_in_turn(kUnits, [&](std::size_t i) { return engine.ready(orders[i]); }); },
       .theirs = [&] { return all_in_turn(kUnits, [&](std::size_t i) { return table.find(keys[i])->second; }); }});
  if (!outcome) return std::move(outcome).error();
  return Outcomes{std::move(*outcome)};
}

}  // namespace kiln::bench
