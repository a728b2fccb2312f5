#include "warm/engine_state.hpp"

#include <algorithm>
#include <exception>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/asked_at.hpp"
#include "base/error.hpp"
#include "base/guarded.hpp"
#include "base/machine.hpp"

namespace kiln {
namespace {

using Stage = Flight::Stage;

// Below the caller's threads: warm-up must not be felt.
constexpr int kNicenessInTheBackground = 10;

// A failure that the same inputs would only give again. Others (no compiler, no disk) are tried anew when asked for.
bool is_remembered(const Error& error) { return error.code == Code::CompileFailed || error.code == Code::LoadRefused; }

// A part may run out of memory, or be somebody's function that throws; on a thread of ours that would end the process.
template <class T, class Function>
Result<T> of_order(const Order& order, const Function& function) noexcept {
  return guarded([&]() -> Result<T> {
    try {
      return function();
    } catch (const std::bad_alloc&) {
      Error error = out_of_memory();
      attempt([&] { error.message = named(order) + " could not be made: " + error.message; });
      return error;
    } catch (const std::exception& thrown) {
      return failure(Code::Internal, named(order) + " could not be made: " + thrown.what());
    } catch (...) {
      return failure(Code::Internal, named(order) + " could not be made: something was thrown");
    }
  });
}

// A copy for those who wait.
Error said_of(const Error& error) noexcept {
  Error copy = out_of_memory();
  attempt([&] { copy = error; });
  return copy;
}

}  // namespace

Event event_of(Event::Kind kind, const Flight& flight) {
  return event_of(kind, flight.order.unit, flight.order.target, flight.number);
}

std::string named(const Order& order) { return "unit '" + order.unit.label() + "' for " + order.target.name(); }

Error cancelled(const Order& order) noexcept {
  Error error{Code::Cancelled, "cancelled", {}};
  attempt([&] { error.message = named(order) + " was cancelled"; });
  return error;
}

Engine::State::State(Parts its_parts, const Options& options)
    : parts(std::move(its_parts)), book(index, options.most_queued),
      background({"kiln-warm", kNicenessInTheBackground, options.most_threads},
                 [this] { (void)work(Priority::Background); }),
      waited({"kiln-get", 0, options.most_threads}, [this] { (void)work(Priority::Waited); }) {}

bool Engine::State::want(Flight& flight, Priority priority) {
  switch (flight.stage) {
    case Stage::Ready: return false;
    case Stage::Running:
      if (flight.is_ending) {
        flight.again = std::max(flight.again.value_or(priority), priority);
        flight.asked = parts.clock->steady();
      }
      return false;
    case Stage::Queued:
      if (priority == flight.priority || priority == Priority::Background) return false;
      book.promote(flight);
      return true;
    case Stage::Failed:
      if (is_remembered(*flight.error)) return false;
      break;
    case Stage::Cancelled: break;
  }
  flight.asked = parts.clock->steady();
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

void Engine::State::wake(Flight& flight, const Result<const Answer*>& outcome) noexcept {
  for (Waiter* waiter : flight.waiters) {
    attempt([&] { waiter->outcome.emplace(outcome); });
    if (!waiter->outcome) waiter->outcome.emplace(out_of_memory());
  }
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
      std::string what = named(flight.order) + " is not ready yet; work on it goes on";
      if (flight.error) what += ". The last try: " + flight.error->message;
      waiter.outcome.emplace(failure(Code::TimedOut, std::move(what)));
      return;
    }
    parts.clock->wait(flight.woken, mutex, left);
  }
}

const Answer* Engine::State::look(const Order& order) {
  Flight* flight = nullptr;
  const auto start = parts.clock->steady();
  auto asked = start;
  {
    const MutexLock lock(mutex);
    flight = book.find(order);
    if (stopping || (flight != nullptr && (flight->stage == Stage::Running || flight->stage == Stage::Failed))) {
      return nullptr;
    }
    if (flight == nullptr) flight = &book.add(order, start);
    if (flight->stage == Stage::Queued) asked = flight->asked;
  }
  const AskedAt scope(asked);
  auto found = of_order<std::optional<Answer>>(order, [&] { return parts.look(order, flight->number); });
  if (!found || !*found) return nullptr;
  (*found)->flow = flight->number;
  Landing landing = landing_of(std::move(**found), nullptr);
  if (landing.answer == nullptr) return nullptr;
  const MutexLock lock(mutex);
  if (flight->stage == Stage::Ready) return flight->landed.get();
  if (flight->stage == Stage::Running) {  // a thread has begun meanwhile, and its answer will be as good
    forgotten.push_back(std::move(landing.answer));
    return forgotten.back().get();
  }
  if (flight->stage == Stage::Queued) book.withdraw(*flight);
  flight->began = start;
  (void)settle(*flight, std::move(landing));
  return flight->landed.get();
}

bool Engine::State::work(Priority priority) noexcept {
  Flight* flight = nullptr;
  {
    const MutexLock lock(mutex);
    if (stopping) return false;
    flight = book.take(priority, parts.clock->steady());
  }
  if (flight == nullptr) return false;
  flight = hash(*flight, priority);
  if (flight != nullptr) fly(*flight);
  return true;
}

Flight* Engine::State::hash(Flight& flight, Priority priority) noexcept {
  Flight* left = &flight;
  bool queued = false;
  const Status hashed = guarded([&]() -> Status {
    (void)flight.order.unit.identity();
    const MutexLock lock(mutex);
    Flight& known = book.identify(flight);
    if (&known != left) {
      queued = !stopping && want(known, priority);
      left = nullptr;
    }
    return {};
  });
  if (queued) (void)pool(priority).add(1);
  if (hashed) return left;
  land(flight, landing_of(out_of_memory(), nullptr));
  return nullptr;
}

void Engine::State::fly(Flight& flight) noexcept {
  std::optional<Recipe> recipe;
  std::optional<Result<Answer>> result;
  const Status made = guarded([&]() -> Status {
    result = make(flight, recipe);
    return {};
  });
  if (!made) result.emplace(made.error());
  if (!result) return;
  land(flight, landing_of(*std::move(result), recipe ? &*recipe : nullptr));
}

std::optional<Result<Answer>> Engine::State::make(Flight& flight, std::optional<Recipe>& recipe) {
  const Order& order = flight.order;
  std::chrono::nanoseconds asked{0};
  {
    const MutexLock lock(mutex);
    asked = flight.asked;
  }
  const AskedAt scope(asked);
  if (parts.serve) {
    auto served = of_order<std::optional<Answer>>(order, [&] { return parts.serve(order, flight.number); });
    if (served && *served) return std::move(**served);
  }
  auto described = of_order<Recipe>(order, [&] { return parts.recipe(order); });
  if (!described) return std::move(described).error();
  recipe = std::move(*described);
  recipe->flow = flight.number;
  {
    const MutexLock lock(mutex);
    recipe->stop = flight.stop.get_token();
    recipe->urgent = flight.priority == Priority::Waited;
    recipe->company = book.company(flight);
  }
  const RequestKey request = recipe->request_key();
  if (follows(flight, request)) return std::nullopt;
  // What `interrupt` would have ended must not begin after it.
  Result<Answer> answer =
      is_stopping() ? cancelled(order) : of_order<Answer>(order, [&] { return parts.resolve(order, *recipe); });
  {
    const MutexLock lock(mutex);
    flying.erase(request);
  }
  return answer;
}

std::optional<std::stop_source> Engine::State::next_to_stop() noexcept {
  const MutexLock lock(mutex);
  for (const auto& [number, flight] : book.flights()) {
    const std::stop_source& stop = flight->stop;
    if (flight->stage == Stage::Running && stop.stop_possible() && !stop.stop_requested()) return stop;
  }
  return std::nullopt;
}

bool Engine::State::follows(Flight& flight, const RequestKey& request) {
  const MutexLock lock(mutex);
  const auto [known, first] = flying.emplace(request, &flight);
  if (!first) known->second->followers.push_back(&flight);
  return !first;
}

Engine::State::Landing Engine::State::landing_of(Result<Answer> result, const Recipe* recipe) noexcept {
  Landing landing;
  try {
    if (result) {
      landing.answer = std::make_unique<const Answer>(std::move(*result));
      return landing;
    }
    if (recipe != nullptr) landing.recipe = std::make_unique<const Recipe>(*recipe);
    landing.error = std::move(result).error();
  } catch (const std::bad_alloc&) {
    landing.error = out_of_memory();
  }
  return landing;
}

void Engine::State::land(Flight& flight, Landing landing) noexcept {
  std::size_t queued = 0;
  bool is_queued_again = false;
  Priority priority = Priority::Background;
  {
    const MutexLock lock(mutex);
    is_queued_again = settle(flight, std::move(landing));
    priority = flight.priority;
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
  if (is_queued_again) (void)pool(priority).add(1);
}

bool Engine::State::settle(Flight& flight, Landing landing) noexcept {
  flight.ended = parts.clock->steady();
  ++flight.landings;
  const std::optional<Priority> again = std::exchange(flight.again, std::nullopt);
  if (landing.answer == nullptr && landing.error.code == Code::Cancelled && flight.is_ending) {
    flight.stage = Stage::Cancelled;
    if (again && !stopping) {  // those who wait have come since
      book.enqueue(flight, *again);
      return true;
    }
    wake(flight, cancelled(flight.order));
    return false;
  }
  if (landing.answer != nullptr) {
    flight.stage = Stage::Ready;
    flight.landed = std::move(landing.answer);
    flight.error.reset();
    flight.recipe.reset();
    flight.answer.store(flight.landed.get(), std::memory_order_release);
    wake(flight, flight.landed.get());
  } else {
    flight.stage = Stage::Failed;
    flight.error = std::move(landing.error);
    flight.recipe = std::move(landing.recipe);
    wake(flight, said_of(*flight.error));
  }
  return false;
}

void Engine::State::tell_of_wait(const Order& order, const Result<const Answer*>& outcome,
                                 std::chrono::nanoseconds start, Caller caller) const noexcept try {
  if (!parts.observer || (outcome && (*outcome)->origin != Origin::Compiled)) return;
  if (!outcome && outcome.error().code != Code::CompileFailed) return;
  Event event = event_of(Event::Kind::HotCompile, order.unit, order.target, outcome ? (*outcome)->flow : 0);
  event.ms = milliseconds_since(*parts.clock, start);
  event.message = caller.text() + " on thread " + thread_name() +
                  (outcome ? " waited for its compile" : " waited for a compile that failed") + "; request it earlier";
  parts.observer.tell(event);
} catch (...) {
  // The caller has his answer.
}

}  // namespace kiln
