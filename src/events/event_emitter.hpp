// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kiln/event.hpp>
#include <kiln/target.hpp>
#include <kiln/unit.hpp>

#include "base/visible_text.hpp"
#include "events/event_sink.hpp"

namespace kiln {

/// Returns an event of a unit and target; `flow` identifies the compile task.
Event make_event(Event::Kind kind, const Unit& unit, const Target& target, std::uint64_t flow = 0);

/// Returns the stream of an event. CUDA's legacy stream has two handles, 0 and 1 (CU_STREAM_LEGACY).
inline std::uint64_t event_stream(const void* stream) {
  const auto handle = reinterpret_cast<std::uintptr_t>(stream);
  return handle == 1 ? 0 : handle;
}

/// An emitter that passes events to any number of sinks and a callback. A value type of the size of a shared pointer;
/// copies share the listeners. Without listeners it costs a branch, so callers build an event only inside `if
/// (observer)`; except for warnings about the configuration, which are printed on standard error if there is no
/// callback, so that no wrong setting stays unnoticed. Thread-safe if the listeners are.
class EventEmitter {
 public:
  EventEmitter() = default;
  /// A null callback counts as no listener, and so does one while `*enabled` is false. `enabled` can be null; otherwise
  /// it must outlive the copies of the emitter.
  explicit EventEmitter(EventCallback callback, const std::atomic<bool>* enabled = nullptr) {
    if (callback) listeners_ = std::make_shared<const Listeners>(Listeners{{}, std::move(callback), enabled});
  }

  /// Returns an emitter with an additional sink, called after the existing sinks and before the callback: a trace takes
  /// its time from the call, and a callback can be slow. A null sink counts as no listener.
  [[nodiscard]] EventEmitter with_sink(std::shared_ptr<EventSink> sink) const {
    if (sink == nullptr) return *this;
    Listeners more = listeners_ != nullptr ? *listeners_ : Listeners{};
    more.sinks.push_back(std::move(sink));
    EventEmitter emitter;
    emitter.listeners_ = std::make_shared<const Listeners>(std::move(more));
    return emitter;
  }

  /// Returns true if there is a listener, even if it is off and can be switched on later.
  bool has_listeners() const { return listeners_ != nullptr; }
  explicit operator bool() const { return listeners_ != nullptr && listeners_->are_listening(); }
  /// Emits an event with the operation context of the calling thread, unless the event has its own.
  void emit(const Event& event) const {
    if (event.kind == Event::Kind::ConfigWarning && !has_callback()) print_warning(event.message);
    if (!*this) return;
    const OperationContext* work = OperationScope::current();
    if (work == nullptr || !event.context.operation.empty()) {
      listeners_->emit(event);
      return;
    }
    Event placed = event;
    placed.context = *work;
    listeners_->emit(placed);
  }
  /// Emits an event that consists of an origin and a message.
  void emit(Event::Kind kind, std::string origin, std::string message) const {
    if (!*this && kind != Event::Kind::ConfigWarning) return;
    Event event;
    event.kind = kind;
    event.origin = std::move(origin);
    event.message = std::move(message);
    emit(event);
  }
  /// Returns a callback that emits to the same listeners; empty if none is on.
  EventCallback callback() const {
    if (!*this) return {};
    return [own = *this](const Event& event) { own.emit(event); };
  }

 private:
  bool has_callback() const { return listeners_ != nullptr && listeners_->is_callback_on(); }

  struct Listeners {
    std::vector<std::shared_ptr<EventSink>> sinks;
    EventCallback callback;                      // a function of the user; may be empty
    const std::atomic<bool>* enabled = nullptr;  // null if the callback is always on
    bool is_callback_on() const {
      return callback != nullptr && (enabled == nullptr || enabled->load(std::memory_order_relaxed));
    }
    bool are_listening() const { return !sinks.empty() || is_callback_on(); }
    void emit(const Event& event) const {
      for (const auto& sink : sinks) sink->on_event(event);
      if (is_callback_on()) callback(event);
    }
  };
  std::shared_ptr<const Listeners> listeners_;
};

}  // namespace kiln
