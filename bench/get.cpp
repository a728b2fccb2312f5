// SPDX-License-Identifier: Apache-2.0
// The cost of getting a unit or a kernel that is ready.
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <kiln/session.hpp>

#include "base/error.hpp"
#include "bench/benchmarks.hpp"
#include "bench/support/no_op_engine.hpp"
#include "bench/support/scratch.hpp"
#include "core/unit_access.hpp"

namespace kiln::bench {
namespace {

// Powers of two: a division would cost as much as the measured call.
constexpr std::size_t kUnits = 1024;
constexpr std::size_t kKernels = 64;
// Enough for the clock.
constexpr std::size_t kCallsPerRound = 10'000;
constexpr std::size_t kShortCallsPerRound = 100'000;  // of calls that take a nanosecond

// The table that a program without kiln would use: keyed by the digest of the unit and the target, or the entry point.
struct UnitAndTarget {
  ArtifactKey unit;
  Target target;
  friend bool operator==(const UnitAndTarget&, const UnitAndTarget&) = default;
};
struct UnitAndEntry {
  ArtifactKey unit;
  std::string entry;
  friend bool operator==(const UnitAndEntry&, const UnitAndEntry&) = default;
};
struct Hash {
  std::size_t operator()(const UnitAndTarget& key) const { return std::hash<ArtifactKey>()(key.unit); }
  std::size_t operator()(const UnitAndEntry& key) const {
    return std::hash<ArtifactKey>()(key.unit) ^ std::hash<std::string>()(key.entry);
  }
};

// Keeps the compiler from removing the computation.
inline void keep(const void* what) { asm volatile("" : : "r"(what) : "memory"); }

// Returns `at`, but not before `result` is there: neither the compiler nor the processor knows that `none` is 0. Calls
// that do not depend on each other overlap, and the other hardware thread of the core then decides how many do.
template <class T>
const T* after(const T* at, const void* result, std::uintptr_t none) {
  return reinterpret_cast<const T*>(reinterpret_cast<std::uintptr_t>(at) +
                                    (reinterpret_cast<std::uintptr_t>(result) & none));
}

// Gets all of them in turn, in an order that a prefetcher cannot predict.
template <class Find>
Result<double> all_in_turn(std::size_t count, const Find& find) {
  constexpr std::size_t kStep = 617;  // odd, so that every unit is visited
  std::size_t at = 0;
  std::size_t found = 0;
  const double each = microseconds_each(kCallsPerRound, [&] {
    found += find(at) ? 1 : 0;
    at = (at + kStep) & (count - 1);
  });
  if (found != kCallsPerRound) return make_error(Code::Internal, "a ready unit was not found");
  return 1000 * each;
}

// Many kernels of one unit, compiled and loaded: a session has no other way to provide kernels.
Unit many_kernels() {
  std::string source;
  for (std::size_t i = 0; i < kKernels; ++i) {
    const std::string name = "kernel_" + std::to_string(i);
    source += "__kernel void " + name + "(__global float* x) { x[get_global_id(0)] += " + std::to_string(i) + "; }\n";
  }
  Unit unit = Unit::opencl("bench.cl", std::move(source));
  for (std::size_t i = 0; i < kKernels; ++i) unit = unit.with_entry("kernel_" + std::to_string(i));
  return unit;
}

Result<Session> session_in(const Scratch& scratch) {
  use_own_directories(scratch);
  SessionOptions options;
  options.settings = {{"cache.dir", scratch / "cache"}};
  return Session::open(options);
}

// Units for one target, from an engine without devices.
Result<Outcome> ready_units() {
  const std::vector<CompileRequest> orders = unseen_orders(kUnits, 2000);
  Engine engine(instant_resolver(), {});
  engine.request(orders);
  if (!wait_until_idle(engine)) return make_error(Code::Internal, "the engine did not become idle");
  std::vector<UnitAndTarget> keys;
  std::unordered_map<UnitAndTarget, const ResolveResult*, Hash> table;
  for (const CompileRequest& order : orders) {
    keys.push_back({ArtifactKey{UnitAccess::identity(order.unit)}, order.target});
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

// Kernels that the session has loaded, by unit and entry point.
Result<Outcome> ready_kernels() {
  const Scratch scratch;
  auto session = session_in(scratch);
  if (!session) return std::move(session).error();
  const Unit unit = many_kernels();
  std::vector<UnitAndEntry> keys;
  std::mutex mutex;
  std::unordered_map<UnitAndEntry, Kernel, Hash> table;
  for (const std::string& entry : unit.entries()) {
    auto kernel = session->get(unit, entry);
    if (!kernel) return std::move(kernel).error();
    keys.push_back({ArtifactKey{UnitAccess::identity(unit)}, entry});
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
                          return kernel.has_value();
                        });
                      },
                  .theirs =
                      [&] {
                        return all_in_turn(kKernels, [&](std::size_t i) {
                          const std::lock_guard lock(mutex);  // another thread may release a unit
                          const auto found = table.find(keys[i]);
                          if (found == table.end()) return false;
                          const Kernel kernel = found->second;
                          keep(&kernel);
                          return true;
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
  const KernelHandle handle = session->handle(unit, unit.entries().front());
  if (auto kernel = handle.get(); !kernel) return std::move(kernel).error();
  if (!handle.ready()) return make_error(Code::Internal, "the handle was not ready after a get");
  int something = 0;
  const std::atomic<const int*> pointer{&something};
  std::uintptr_t none = 0;
  asm volatile("" : "+r"(none));
  const auto shared = std::make_shared<int>(0);
  const auto each = [](const auto& call) -> Result<double> {
    return 1000 * microseconds_each(kShortCallsPerRound, call);
  };
  Outcomes outcomes;
  for (auto&& outcome : {compare({.name = "get_handle",
                        .unit = "ns",
                        .limit = 3,
                        .ours =
                                      [&] {
                                        const KernelHandle* at = &handle;
                                        return each([&] {
                                          const auto kernel = at->try_get_ref();
                                          at = after(at, kernel ? std::bit_cast<const void*>(*kernel) : nullptr, none);
                                        });
                                      },
                        .theirs =
                                      [&] {
                                        const auto* at = &pointer;
                                        return each([&] { at = after(at, at->load(std::memory_order_acquire), none); });
                                      }}),
                         compare({.name = "get_handle_owned",
                         .unit = "ns",
                         .limit = 1.5,
                         .ours =
                                      [&] {
                                        return each([&] {
                                          const auto kernel = handle.get();
                                          keep(kernel ? &*kernel : nullptr);
                                        });
                                      },
                         .theirs =
                                      [&] {
                                        return each([&] {
                                          const auto copy = shared;
                                          keep(copy.get());
                                        });
                                      }})}) {
    if (Status added = add(outcomes, outcome); !added) return std::move(added).error();
  }
  return outcomes;
}

}  // namespace kiln::bench
