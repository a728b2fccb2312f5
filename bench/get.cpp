// What a call pays for a unit or a kernel that is ready.
#include <atomic>
#include <string>
#include <unordered_map>
#include <vector>

#include <kiln/session.hpp>

#include "base/error.hpp"
#include "bench/benchmarks.hpp"
#include "bench/instant_engine.hpp"
#include "bench/scratch.hpp"

namespace kiln::bench {
namespace {

// Powers of two: a division would cost as much as what is measured.
constexpr std::size_t kUnits = 1024;
constexpr std::size_t kKernels = 64;
// Enough for the clock.
constexpr std::size_t kCallsPerRound = 10'000;

// What somebody without kiln would keep: a table by the unit's digest and the target, or the entry.
struct UnitAndTarget {
  Key unit;
  Target target;
  friend bool operator==(const UnitAndTarget&, const UnitAndTarget&) = default;
};
struct UnitAndEntry {
  Key unit;
  std::string entry;
  friend bool operator==(const UnitAndEntry&, const UnitAndEntry&) = default;
};
struct Hash {
  std::size_t operator()(const UnitAndTarget& key) const { return std::hash<Key>()(key.unit); }
  std::size_t operator()(const UnitAndEntry& key) const {
    return std::hash<Key>()(key.unit) ^ std::hash<std::string>()(key.entry);
  }
};

// The compiler has to believe that somebody wants it.
inline void keep(const void* what) { asm volatile("" : : "r"(what) : "memory"); }

// Asks for all of them in turn, in an order that no prefetcher knows.
template <class Find>
Result<double> all_in_turn(std::size_t count, const Find& find) {
  constexpr std::size_t kStep = 617;  // odd, and so it comes to each
  std::size_t at = 0;
  std::size_t found = 0;
  const double each = microseconds_each(kCallsPerRound, [&] {
    found += find(at) ? 1 : 0;
    at = (at + kStep) & (count - 1);
  });
  if (found != kCallsPerRound) return failure(Code::Internal, "a unit that is ready was not found");
  return 1000 * each;
}

// Many kernels of one unit, really compiled and loaded: what a session hands out can be had in no other way.
Unit many_kernels() {
  std::string source;
  for (std::size_t i = 0; i < kKernels; ++i) {
    const std::string name = "kernel_" + std::to_string(i);
    source += "__kernel void " + name + "(__global float* x) { x[get_global_id(0)] += " + std::to_string(i) + "; }\n";
  }
  Unit unit = Unit::opencl("bench.cl", std::move(source));
  for (std::size_t i = 0; i < kKernels; ++i) unit = unit.entry("kernel_" + std::to_string(i));
  return unit;
}

Result<Session> session_in(const Scratch& scratch) {
  use_own_folders(scratch);
  SessionOptions options;
  options.settings = {{"cache.dir", scratch / "cache"}};
  return Session::open(options);
}

// Of a unit for one target, by the engine that knows no device.
Result<Outcome> ready_units() {
  const std::vector<Order> orders = unseen_orders(kUnits, 2000);
  Engine engine(instant_parts());
  engine.request(orders);
  if (!wait_until_idle(engine)) return failure(Code::Internal, "the engine did not come to rest");
  std::vector<UnitAndTarget> keys;
  std::unordered_map<UnitAndTarget, const Answer*, Hash> table;
  for (const Order& order : orders) {
    keys.push_back({Key{order.unit.identity()}, order.target});
    table.emplace(keys.back(), engine.ready(order));
  }
  return compare(
      {.name = "get_recipe",
       .unit = "ns",
       .limit = 1.5,
       .ours = [&] { return all_in_turn(kUnits, [&](std::size_t i) { return engine.ready(orders[i]) != nullptr; }); },
       .theirs =
           [&] { return all_in_turn(kUnits, [&](std::size_t i) { return table.find(keys[i])->second != nullptr; }); }});
}

// Of a kernel that the session has loaded, by its unit and entry.
Result<Outcome> ready_kernels() {
  const Scratch scratch;
  auto session = session_in(scratch);
  if (!session) return std::move(session).error();
  const Unit unit = many_kernels();
  std::vector<UnitAndEntry> keys;
  std::unordered_map<UnitAndEntry, Kernel, Hash> table;
  for (const std::string& entry : unit.entries()) {
    auto kernel = session->get(unit, entry);
    if (!kernel) return std::move(kernel).error();
    keys.push_back({Key{unit.identity()}, entry});
    table.emplace(keys.back(), *kernel);
  }
  return compare({.name = "get_recipe_session",
                  .unit = "ns",
                  .limit = 1.5,
                  .ours =
                      [&] {
                        return all_in_turn(kKernels, [&](std::size_t i) {
                          const auto kernel = session->get(unit, keys[i].entry);
                          keep(kernel ? &*kernel : nullptr);
                          return kernel.ok();
                        });
                      },
                  .theirs =
                      [&] {
                        return all_in_turn(kKernels, [&](std::size_t i) {
                          const auto kernel = table.find(keys[i]);
                          keep(&kernel->second);
                          return kernel != table.end();
                        });
                      }});
}

}  // namespace

Result<Outcomes> get_recipe() {
  Outcomes outcomes;
  for (auto&& outcome : {ready_units(), ready_kernels()}) {
    if (Status added = add(outcomes, outcome); !added) return std::move(added).error();
  }
  return outcomes;
}

Result<Outcomes> get_handle() {
  const Scratch scratch;
  auto session = session_in(scratch);
  if (!session) return std::move(session).error();
  const Unit unit = many_kernels();
  const Handle handle = session->handle(unit, unit.entries().front());
  if (auto kernel = handle.get(); !kernel) return std::move(kernel).error();
  if (!handle.ready()) return failure(Code::Internal, "the handle was not ready after a get");
  int something = 0;
  const std::atomic<const int*> pointer{&something};
  // So short that a round needs many; what each gives must really be there.
  constexpr std::size_t kCalls = 100'000;
  auto outcome =
      compare({.name = "get_handle",
               .unit = "ns",
               .limit = 3,
               .ours = [&]() -> Result<double> {
                 return 1000 * microseconds_each(kCalls, [&] {
                          const auto kernel = handle.get();
                          keep(kernel ? &*kernel : nullptr);
                        });
               },
               .theirs = [&]() -> Result<double> {
                 return 1000 * microseconds_each(kCalls, [&] { keep(pointer.load(std::memory_order_acquire)); });
               }});
  if (!outcome) return std::move(outcome).error();
  return Outcomes{std::move(*outcome)};
}

}  // namespace kiln::bench
