#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kiln/event.hpp>
#include <kiln/target.hpp>
#include <kiln/unit.hpp>

#include "observe/sink.hpp"

namespace kiln {

/// An event of a unit for a target; `flow` joins what happens to them.
Event event_of(Event::Kind kind, const Unit& unit, const Target& target, std::uint64_t flow = 0);

/// Hands events to whoever listens: any number of sinks and a callback. A value, of the size of a shared pointer:
/// copies tell the same listeners. With no listener it costs a branch, so callers build an event only behind `if
/// (observer)`. Any thread, as far as the listeners allow.
class Observer {
 public:
  Observer() = default;
  /// A null callback is no listener.
  explicit Observer(EventCallback callback) {
    if (callback) listeners_ = std::make_shared<const Listeners>(Listeners{{}, std::move(callback)});
  }

  /// One that tells this sink too, after the sinks that are there and before the callback: a trace takes its time from
  /// the moment when it is told, and a callback may be slow. A null sink is no listener.
  [[nodiscard]] Observer with(std::shared_ptr<EventSink> sink) const {
    if (sink == nullptr) return *this;
    Listeners more = listeners_ != nullptr ? *listeners_ : Listeners{};
    more.sinks.push_back(std::move(sink));
    Observer observer;
    observer.listeners_ = std::make_shared<const Listeners>(std::move(more));
    return observer;
  }

  explicit operator bool() const { return listeners_ != nullptr; }
  /// With the work that the calling thread does, unless the event names its own.
  void tell(const Event& event) const {
    if (listeners_ == nullptr) return;
    const Work* work = WorkScope::current();
    if (work == nullptr || !event.work.operation.empty()) {
      listeners_->tell(event);
      return;
    }
    Event placed = event;
    placed.work = *work;
    listeners_->tell(placed);
  }
  /// The common short form: something went another way than it should, and why.
  void tell(Event::Kind kind, std::string origin, std::string message) const {
    if (listeners_ == nullptr) return;
    Event event;
    event.kind = kind;
    event.origin = std::move(origin);
    event.message = std::move(message);
    tell(event);
  }
  /// The same for those who know no more of listeners than this; empty where there is none.
  EventCallback callback() const {
    if (listeners_ == nullptr) return {};
    return [own = *this](const Event& event) { own.tell(event); };
  }

 private:
  struct Listeners {
    std::vector<std::shared_ptr<EventSink>> sinks;
    EventCallback callback;
    void tell(const Event& event) const {
      for (const auto& sink : sinks) sink->tell(event);
      if (callback) callback(event);
    }
  };
  std::shared_ptr<const Listeners> listeners_;
};

}  // namespace kiln
