#include "warm/engine.hpp"

#include <new>
#include <utility>

#include "base/guarded.hpp"
#include "warm/engine_state.hpp"

namespace kiln {
namespace {

using Stage = Flight::Stage;

// Whoever has less time than this does not look for himself: that reads files.
constexpr std::chrono::milliseconds kTimeToLook{10};

Event dropped(const Order& order) {
  Event event = event_of(Event::Kind::Cancelled, order.unit, order.target);
  event.message = "too much has been requested at once; it is made when somebody gets it";
  return event;
}

}  // namespace

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
    try {
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
    } catch (const std::bad_alloc&) {
      // What is not noted is made when somebody gets it.
    }
  }
  // Told before a thread can begin, so that nothing seems to come before its request.
  attempt([&] {
    for (const Event& event : events) state.parts.observer.tell(event);
  });
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
  std::vector<std::stop_source> runs;  // ended off the lock: whoever listens may take a moment
  runs.reserve(orders.size());         // what is begun with one of them is done with all
  {
    const MutexLock lock(state.mutex);
    state.book.identify_hashed();
    for (const Order& order : orders) {
      Flight* flight = state.book.find(order);
      if (flight == nullptr || (flight->stage != Stage::Queued && flight->stage != Stage::Running)) continue;
      if (flight->stage == Stage::Queued) {
        state.book.withdraw(*flight);
        if (state.parts.observer) attempt([&] { events.push_back(event_of(Event::Kind::Cancelled, *flight)); });
      }
      // One for whose end others wait goes on.
      if (flight->stage == Stage::Running && flight->followers.empty()) {
        flight->is_ending = true;
        flight->again.reset();
        runs.push_back(flight->stop);
      }
      State::wake(*flight, cancelled(order));
    }
  }
  for (std::stop_source& run : runs) run.request_stop();
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
  state_->forgotten.reserve(state_->forgotten.size() + 1);
  flight->answer.store(nullptr, std::memory_order_release);
  state_->forgotten.push_back(std::move(flight->landed));
  flight->stage = Stage::Cancelled;
}

SessionStatus Engine::status() const {
  const MutexLock lock(state_->mutex);
  return status_of(state_->book, state_->parts.clock->steady());
}

Glance Engine::glance(std::size_t most) const {
  const MutexLock lock(state_->mutex);
  return glance_at(state_->book, state_->parts.clock->steady(), most);
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
  while (std::optional<std::stop_source> run = state.next_to_stop()) run->request_stop();
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
