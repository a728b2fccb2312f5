#include "warm/engine.hpp"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "warm/flight_book.hpp"
#include "warm/pool.hpp"

namespace kiln {
namespace {

using Stage = Flight::Stage;

// Below the caller's threads: warm-up must not be felt.
constexpr int kNicenessInTheBackground = 10;

// Whoever has less time than this does not look for himself: that reads files.
constexpr std::chrono::milliseconds kTimeToLook{10};

// A failure that the same inputs would only give again. Others (no compiler, no disk) are tried anew when asked for.
bool is_remembered(const Error& error) { return error.code == Code::CompileFailed || error.code == Code::LoadRefused; }

Event event_of(Event::Kind kind, const Flight& flight) {
  Event event;
  event.kind = kind;
  event.unit = flight.order.unit.name();
  event.target = flight.order.target.name();
  event.flow = flight.number;
  return event;
}

Event dropped(const Order& order) {
  Event event;
  event.kind = Event::Kind::Cancelled;
  event.unit = order.unit.name();
  event.target = order.target.name();
  event.message = "too much has been requested at once; it is made when somebody gets it";
  return event;
}

std::string named(const Order& order) { return "unit '" + order.unit.name() + "' for " + order.target.name(); }

Error cancelled(const Order& order) { return failure(Code::Cancelled, named(order) + " was cancelled"); }

// A part may run out of memory, or be somebody's function that throws; on a thread of ours that would end the process.
template <class T, class Function>
Result<T> guarded(const Order& order, const Function& function) {
  try {
    return function();
  } catch (const std::exception& thrown) {
    return failure(Code::Internal, named(order) + " could not be made: " + thrown.what());
  } catch (...) {
    return failure(Code::Internal, named(order) + " could not be made: something was thrown");
  }
}

}  // namespace

struct Engine::State {
  State(Parts its_parts, const Options& options)
      : parts(std::move(its_parts)), book(index, options.most_queued),
        background({"kiln-warm", kNicenessInTheBackground, options.most_threads},
                   [this] { (void)work(Priority::Background); }),
        waited({"kiln-get", 0, options.most_threads}, [this] { (void)work(Priority::Waited); }) {}

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
  // Gives everybody who waits the same outcome.
  static void wake(Flight& flight, const Result<const Answer*>& outcome);

  // What the threads of a pool do; false where there was nothing to do.
  bool work(Priority priority);
  void fly(Flight& flight);
  bool is_stopping() const {
    const MutexLock lock(mutex);
    return stopping;
  }
  // Whether another flight makes the same request just now; this one is then parked until that one has landed.
  bool follows(Flight& flight, const RequestKey& request);
  void land(Flight& flight, Result<Answer> result, const Recipe* recipe);
  void settle(Flight& flight, Result<Answer> result, const Recipe* recipe) KILN_REQUIRES(mutex);
  // Whether what failed would fail again; reads files, so not under the lock.
  bool in_vain(const Recipe* recipe) const;
  void tell_of_wait(const Order& order, const Result<const Answer*>& outcome, std::chrono::nanoseconds start,
                    Caller caller) const;

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

bool Engine::State::want(Flight& flight, Priority priority) {
  switch (flight.stage) {
    case Stage::Ready:
    case Stage::Running: return false;
    case Stage::Queued:
      if (priority == flight.priority || priority == Priority::Background) return false;
      book.promote(flight);
      return true;
    case Stage::Failed:
      if (is_remembered(*flight.error)) return false;
      break;
    case Stage::Cancelled: break;
  }
  book.enqueue(flight, priority);
  return true;
}

void Engine::State::hash_all_like(std::span<const Order> orders) {
  std::unordered_set<std::string_view> names;
  for (const Order& order : orders) {
    (void)order.unit.identity();
    names.insert(order.unit.name());
  }
  std::vector<Unit> units;
  {
    const MutexLock lock(mutex);
    units = book.not_hashed(names);
  }
  for (const Unit& unit : units) (void)unit.identity();
}

void Engine::State::wake(Flight& flight, const Result<const Answer*>& outcome) {
  for (Waiter* waiter : flight.waiters) waiter->outcome.emplace(outcome);
  flight.waiters.clear();
  flight.woken.notify_all();
}

Engine::State::Joined Engine::State::join(const Order& order, Priority priority, Waiter& waiter) {
  std::uint64_t judged = 0;  // the landing whose failure was found worth another try
  for (;;) {
    std::unique_ptr<const Recipe> recipe;
    std::uint64_t landing = 0;
    {
      const MutexLock lock(mutex);
      Flight* flight = book.find(order);
      if (flight == nullptr) flight = &book.add(order, parts.clock->steady());
      const bool failed = flight->stage == Stage::Failed && is_remembered(*flight->error);
      if (stopping) {
        waiter.outcome.emplace(cancelled(order));
      } else if (flight->stage == Stage::Ready) {
        waiter.outcome.emplace(flight->landed.get());
      }
      if (waiter.outcome) return {};
      if (!failed || flight->landings == judged) {
        if (failed) flight->stage = Stage::Cancelled;
        flight->waiters.push_back(&waiter);
        return {flight, want(*flight, priority)};
      }
      waiter.outcome.emplace(*flight->error);
      landing = flight->landings;
      if (flight->recipe != nullptr) recipe = std::make_unique<const Recipe>(*flight->recipe);
    }
    if (in_vain(recipe.get())) return {};
    waiter.outcome.reset();
    judged = landing;
  }
}

bool Engine::State::in_vain(const Recipe* recipe) const {
  if (recipe == nullptr || !parts.changed_since_failure) return true;
  try {
    return !parts.changed_since_failure(*recipe);
  } catch (...) {
    return true;  // nobody knows of a change
  }
}

void Engine::State::wait(Flight& flight, const Deadline& deadline, Waiter& waiter) {
  const MutexLock lock(mutex);
  while (!waiter.outcome) {
    const auto left = deadline.left();
    if (left == std::chrono::nanoseconds(0)) {
      std::erase(flight.waiters, &waiter);
      waiter.outcome.emplace(failure(Code::TimedOut, named(flight.order) + " is not ready yet; work on it goes on"));
      return;
    }
    parts.clock->wait(flight.woken, mutex, left);
  }
}

const Answer* Engine::State::look(const Order& order) {
  {
    const MutexLock lock(mutex);
    const Flight* flight = book.find(order);
    if (stopping || (flight != nullptr && (flight->stage == Stage::Running || flight->stage == Stage::Failed))) {
      return nullptr;
    }
  }
  const auto found = guarded<std::optional<Answer>>(order, [&] { return parts.look(order); });
  if (!found || !*found) return nullptr;
  const MutexLock lock(mutex);
  Flight* flight = book.find(order);
  if (flight == nullptr) flight = &book.add(order, parts.clock->steady());
  if (flight->stage == Stage::Ready) return flight->landed.get();
  if (flight->stage == Stage::Running) {  // a thread has begun meanwhile, and its answer will be as good
    forgotten.push_back(std::make_unique<const Answer>(**found));
    return forgotten.back().get();
  }
  if (flight->stage == Stage::Queued) book.withdraw(*flight);
  flight->began = parts.clock->steady();
  settle(*flight, **found, nullptr);
  return flight->landed.get();
}

bool Engine::State::work(Priority priority) {
  Flight* flight = nullptr;
  {
    const MutexLock lock(mutex);
    if (stopping) return false;
    flight = book.take(priority, parts.clock->steady());
  }
  if (flight == nullptr) return false;
  (void)flight->order.unit.identity();  // hashed here, so that nobody does it under the lock
  bool queued = false;
  {
    const MutexLock lock(mutex);
    Flight& known = book.identify(*flight);
    if (&known != flight) {
      queued = !stopping && want(known, priority);
      flight = nullptr;
    }
  }
  if (queued) (void)pool(priority).add(1);
  if (flight != nullptr) fly(*flight);
  return true;
}

void Engine::State::fly(Flight& flight) {
  const Order& order = flight.order;
  Result<Recipe> recipe = guarded<Recipe>(order, [&] { return parts.recipe(order); });
  if (!recipe) return land(flight, std::move(recipe).error(), nullptr);
  recipe->flow = flight.number;
  const RequestKey request = recipe->request_key();
  if (follows(flight, request)) return;
  // What `interrupt` would have ended must not begin after it.
  Result<Answer> answer =
      is_stopping() ? cancelled(order) : guarded<Answer>(order, [&] { return parts.resolve(order, *recipe); });
  {
    const MutexLock lock(mutex);
    flying.erase(request);
  }
  land(flight, std::move(answer), &*recipe);
}

bool Engine::State::follows(Flight& flight, const RequestKey& request) {
  const MutexLock lock(mutex);
  const auto [known, first] = flying.emplace(request, &flight);
  if (!first) known->second->followers.push_back(&flight);
  return !first;
}

void Engine::State::land(Flight& flight, Result<Answer> result, const Recipe* recipe) {
  std::size_t queued = 0;
  {
    const MutexLock lock(mutex);
    settle(flight, std::move(result), recipe);
    // They find in the store what this one left there.
    for (Flight* follower : flight.followers) {
      if (stopping) {
        follower->stage = Stage::Cancelled;
        wake(*follower, cancelled(follower->order));
      } else {
        book.enqueue(*follower, Priority::Waited);  // it has waited its turn before
        ++queued;
      }
    }
    flight.followers.clear();
  }
  (void)waited.add(queued);
}

void Engine::State::settle(Flight& flight, Result<Answer> result, const Recipe* recipe) {
  flight.ended = parts.clock->steady();
  ++flight.landings;
  if (result) {
    flight.stage = Stage::Ready;
    flight.landed = std::make_unique<const Answer>(std::move(*result));
    flight.error.reset();
    flight.recipe.reset();
    flight.answer.store(flight.landed.get(), std::memory_order_release);
    wake(flight, flight.landed.get());
  } else {
    flight.stage = Stage::Failed;
    flight.error = std::move(result).error();
    flight.recipe = recipe != nullptr ? std::make_unique<const Recipe>(*recipe) : nullptr;
    wake(flight, *flight.error);
  }
}

void Engine::State::tell_of_wait(const Order& order, const Result<const Answer*>& outcome,
                                 std::chrono::nanoseconds start, Caller caller) const {
  if (!parts.observer || (outcome && (*outcome)->origin != Origin::Compiled)) return;
  if (!outcome && outcome.error().code != Code::CompileFailed && outcome.error().code != Code::TimedOut) return;
  char thread[16] = "";
  (void)pthread_getname_np(pthread_self(), thread, sizeof thread);
  Event event;
  event.kind = Event::Kind::HotCompile;
  event.unit = order.unit.name();
  event.target = order.target.name();
  event.flow = outcome ? (*outcome)->flow : 0;
  event.ms = milliseconds_since(*parts.clock, start);
  event.message = std::string(caller.file) + ":" + std::to_string(caller.line) + " on thread " + thread +
                  (outcome ? " waited for its compile" : " waited in vain: " + outcome.error().message) +
                  "; request it earlier";
  parts.observer.tell(event);
}

Engine::Engine(Parts parts, Options options) : state_(std::make_unique<State>(std::move(parts), options)) {}

Engine::~Engine() { stop(); }

void Engine::request(std::span<const Order> orders, Priority priority) {
  State& state = *state_;
  std::vector<Event> events;
  std::size_t queued = 0;
  {
    const MutexLock lock(state.mutex);
    if (state.stopping) return;
    const auto now = state.parts.clock->steady();
    for (const Order& order : orders) {
      Flight* flight = state.book.find(order);
      if (state.book.full() && (flight == nullptr || flight->stage == Stage::Cancelled)) {
        if (state.parts.observer) events.push_back(dropped(order));
        continue;
      }
      if (flight == nullptr) flight = &state.book.add(order, now);
      if (!state.want(*flight, priority)) continue;
      ++queued;
      if (state.parts.observer) events.push_back(event_of(Event::Kind::Requested, *flight));
    }
  }
  // Told before a thread can begin, so that nothing seems to come before its request.
  for (const Event& event : events) state.parts.observer.tell(event);
  if (queued > 0) (void)state.pool(priority).add(queued);
}

const Answer* Engine::ready(const Order& order) const {
  const Flight* flight = state_->index.find(order.unit.identity(), order.target);
  return flight != nullptr ? flight->answer.load(std::memory_order_acquire) : nullptr;
}

Result<const Answer*> Engine::get(const Order& order, std::chrono::nanoseconds limit, Caller caller) {
  if (const Answer* answer = ready(order)) return answer;
  State& state = *state_;
  const auto start = state.parts.clock->steady();
  const Deadline deadline(*state.parts.clock, limit);
  if (state.parts.look && limit >= kTimeToLook) {
    if (const Answer* answer = state.look(order)) return answer;
  }
  const bool waits = limit > std::chrono::nanoseconds(0);
  const Priority priority = waits ? Priority::Waited : Priority::Background;
  Waiter waiter;
  const State::Joined joined = state.join(order, priority, waiter);
  if (joined.flight != nullptr) {
    // Where not one thread can be had it is made here, after what others have waited for longer, and the limit cannot
    // be kept: that is the cost without kiln. Whoever does not wait does not pay it.
    if (joined.queued && !state.pool(priority).add(1) && waits) {
      while (state.work(priority)) {
      }
    }
    state.wait(*joined.flight, deadline, waiter);
    if (waits) state.tell_of_wait(order, *waiter.outcome, start, caller);
  }
  return *std::move(waiter.outcome);
}

void Engine::cancel(std::span<const Order> orders) {
  State& state = *state_;
  state.hash_all_like(orders);
  std::vector<Event> events;
  {
    const MutexLock lock(state.mutex);
    state.book.identify_hashed();
    for (const Order& order : orders) {
      Flight* flight = state.book.find(order);
      if (flight == nullptr || (flight->stage != Stage::Queued && flight->stage != Stage::Running)) continue;
      if (flight->stage == Stage::Queued) {
        state.book.withdraw(*flight);
        if (state.parts.observer) events.push_back(event_of(Event::Kind::Cancelled, *flight));
      }
      State::wake(*flight, cancelled(order));
    }
  }
  for (const Event& event : events) state.parts.observer.tell(event);
}

void Engine::retry(std::span<const Order> orders) {
  for (const Order& order : orders) (void)order.unit.identity();  // off the lock; what has failed is known by it
  const MutexLock lock(state_->mutex);
  for (const Order& order : orders) {
    Flight* flight = state_->book.find(order);
    if (flight != nullptr && flight->stage == Stage::Failed) flight->stage = Stage::Cancelled;
  }
}

void Engine::forget(const Order& order) {
  (void)order.unit.identity();
  const MutexLock lock(state_->mutex);
  Flight* flight = state_->book.find(order);
  if (flight == nullptr || flight->stage != Stage::Ready) return;
  flight->answer.store(nullptr, std::memory_order_release);
  state_->forgotten.push_back(std::move(flight->landed));
  flight->stage = Stage::Cancelled;
}

SessionStatus Engine::status() const {
  const MutexLock lock(state_->mutex);
  return status_of(state_->book, state_->parts.clock->steady());
}

void Engine::stop() {
  State& state = *state_;
  {
    const MutexLock lock(state.mutex);
    state.stopping = true;
    for (const auto& [number, flight] : state.book.flights()) {
      if (flight->stage == Stage::Queued) state.book.withdraw(*flight);
      State::wake(*flight, cancelled(flight->order));
    }
  }
  try {
    if (state.parts.interrupt) state.parts.interrupt();
  } catch (...) {
    // Then what runs is waited for.
  }
  // A compiler that ends the process on a thread of ours would wait for itself.
  if (Pool::on_a_thread()) return;
  state.background.stop();
  state.waited.stop();
}

}  // namespace kiln
