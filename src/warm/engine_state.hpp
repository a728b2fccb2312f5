#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "warm/flight_book.hpp"
#include "warm/pool.hpp"

namespace kiln {

Event event_of(Event::Kind kind, const Flight& flight);
/// What errors call an order.
std::string named(const Order& order);
/// Needs no memory: without any it names no unit.
Error cancelled(const Order& order) noexcept;

/// The engine's flights and the threads that they are on.
struct Engine::State {
  State(Parts its_parts, const Options& options);

  Pool& pool(Priority priority) { return priority == Priority::Waited ? waited : background; }

  // Sees to it that a flight is under way, if it is worth it: whether it was queued, anew or at a higher priority.
  bool want(Flight& flight, Priority priority) KILN_REQUIRES(mutex);
  // The flight of a get, queued if it was not under way, with the waiter among those who wait for it; null where that
  // is no use, and `waiter` has the outcome already.
  struct Joined {
    Flight* flight = nullptr;
    bool queued = false;
  };
  Joined join(const Order& order, Priority priority, Waiter& waiter);
  void wait(Flight& flight, const Deadline& deadline, Waiter& waiter);
  // What the caller finds by himself, unless a thread is at it already.
  const Answer* look(const Order& order);
  // Hashes these units, and off the lock those of their names that were requested and not hashed yet: one of them may
  // be equal to one of these.
  void hash_all_like(std::span<const Order> orders);
  // Gives everybody who waits the same outcome, or that there is no memory to say it.
  static void wake(Flight& flight, const Result<const Answer*>& outcome) noexcept;

  // What the threads of a pool do; false where there was nothing to do. Whatever a flight comes to, it lands: nobody
  // waits for one that was given up for want of memory.
  bool work(Priority priority) noexcept;
  // Hashes the unit of a flight that was taken, so that nobody does it under the lock; null where another flight for an
  // equal unit goes on in its stead.
  Flight* hash(Flight& flight, Priority priority) noexcept;
  void fly(Flight& flight) noexcept;
  // What fly comes to, with what it was made from by then; nothing where another flight makes the same request.
  std::optional<Result<Answer>> make(Flight& flight, std::optional<Recipe>& recipe);
  // A run that goes on and was not told to stop; by one and one, since a list of them needs memory.
  std::optional<std::stop_source> next_to_stop() noexcept;
  bool is_stopping() const {
    const MutexLock lock(mutex);
    return stopping;
  }
  // Whether another flight makes the same request just now; this one is then parked until that one has landed.
  bool follows(Flight& flight, const RequestKey& request);
  // What a flight came to, made off the lock and before anything is changed, since it needs memory.
  struct Landing {
    std::unique_ptr<const Answer> answer;
    Error error;  // where there is no answer …
    std::unique_ptr<const Recipe> recipe;
  };
  static Landing landing_of(Result<Answer> result, const Recipe* recipe) noexcept;
  void land(Flight& flight, Landing landing) noexcept;
  // Whether it was queued again, for those who have ordered it since it was cancelled.
  bool settle(Flight& flight, Landing landing) noexcept KILN_REQUIRES(mutex);
  // Whether what failed would fail again; reads files, so not under the lock.
  bool in_vain(const Recipe* recipe) const;
  void tell_of_wait(const Order& order, const Result<const Answer*>& outcome, std::chrono::nanoseconds start,
                    Caller caller) const noexcept;

  const Parts parts;
  mutable Mutex mutex;
  FlightIndex index;  // any thread may read it; the book writes it
  FlightBook book KILN_GUARDED_BY(mutex);
  std::unordered_map<RequestKey, Flight*> flying KILN_GUARDED_BY(mutex);
  std::vector<std::unique_ptr<const Answer>> forgotten KILN_GUARDED_BY(mutex);  // somebody may still look at them
  bool stopping KILN_GUARDED_BY(mutex) = false;
  // Last, so that their threads end before what they use.
  Pool background;
  Pool waited;
};

}  // namespace kiln
