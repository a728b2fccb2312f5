#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include <kiln/kernel.hpp>
#include <kiln/result.hpp>
#include <kiln/status.hpp>

#include "base/clock.hpp"
#include "observe/observer.hpp"
#include "warm/glance.hpp"
#include "warm/resolver.hpp"

namespace kiln {

/// What somebody wants: a unit for a target. Cheap to copy and to make: nothing is hashed for it.
struct Order {
  Unit unit;
  Target target;
  bool load = false;  ///< it is for a device of this process; of two orders for one flight the first says so
};

/// Whether somebody waits for it.
enum class Priority : unsigned char { Background, Waited };

/// Turns orders into answers in the background: one flight per request, a bounded queue, a lazy pool of threads.
/// No device in sight. Any thread may call any function; destroying it ends its work as `stop` does.
class Engine {
 public:
  /// What a flight needs of the world, called on the engine's threads, several at once.
  struct Parts {
    /// The answer of somebody who needs no recipe, because no compiler of this machine has a say in it: a bundle's. It
    /// is asked before the others. Null: nobody's.
    std::function<Result<std::optional<Answer>>(const Order&, std::uint64_t flow)> serve;
    /// The recipe of an order as of now, and its answer: what the tiers have or a compiler makes of it.
    std::function<Result<Recipe>(const Order&)> recipe;
    std::function<Result<Answer>(const Order&, const Recipe&)> resolve;
    /// What can be had without compiling, asked by `get` on the caller's thread before it waits for one of the
    /// engine's: a hit is not worth two changes of thread. Null: nothing.
    std::function<Result<std::optional<Answer>>(const Order&, std::uint64_t flow)> look;
    /// Whether what failed would be compiled from other inputs now; asked by `get`, on the caller's thread. Null: no.
    std::function<bool(const Recipe&)> changed_since_failure;
    /// Makes whatever runs in `resolve` end soon, where that can be done at all. Called by `stop`. Null: it cannot.
    std::function<void()> interrupt;
    const Clock* clock = &system_clock();
    Observer observer;
  };
  struct Options {
    unsigned most_threads = 0;  ///< of each priority; 0: by cores and by free memory
    std::size_t most_queued = 100'000;
  };
  explicit Engine(Parts parts) : Engine(std::move(parts), Options{}) {}
  Engine(Parts parts, Options options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Says what will be needed. Never waits, never hashes a source, opens nothing. What was ordered before is not
  /// ordered again; what a full queue cannot take is dropped, with an event (a `get` still makes it).
  void request(std::span<const Order> orders, Priority priority = Priority::Background);

  /// The answer: at once where it is there, else after joining or starting its flight, at most `limit` from now.
  /// Code::TimedOut leaves the flight running; Code::Cancelled when it was cancelled or the engine stopped meanwhile.
  /// A failure is remembered and returned at once until an input changes or `retry`. The answer stays where it is for
  /// as long as the engine lives.
  Result<const Answer*> get(const Order& order, std::chrono::nanoseconds limit, Caller caller = Caller::here());
  /// The answer where it is there; null where it is not. No lock is taken.
  const Answer* ready(const Order& order) const;

  /// What has not begun will not; whoever waits gets Code::Cancelled. A flight that runs is told by its recipe's
  /// `stop`: a compile in a process of its own is ended, any other goes on and keeps its result. A later request or get
  /// orders it anew.
  void cancel(std::span<const Order> orders);
  /// Forgets failures, so that the next request or get tries again.
  void retry(std::span<const Order> orders);
  /// Gives up an answer that turned out not to be usable: the next request or get orders it anew.
  void forget(const Order& order);

  /// All orders at one moment.
  SessionStatus status() const;
  /// Likewise, of at most so many orders: for those who look again and again.
  Glance glance(std::size_t most) const;

  /// Takes no further order, cancels what has not begun, wakes whoever waits, and returns when nothing runs any more.
  /// A compile that runs in this process is waited for; `interrupt` ends those that can be ended.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kiln
