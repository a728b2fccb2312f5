#pragma once

#include <utility>

#include <kiln/event.hpp>

namespace kiln {

/// Hands events to whoever listens. A value: copies tell the same listener. With no listener it costs a branch, so
/// callers build an event only behind `if (observer)`. Any thread, as far as the listener allows.
class Observer {
 public:
  Observer() = default;
  explicit Observer(EventCallback callback) : callback_(std::move(callback)) {}

  explicit operator bool() const { return static_cast<bool>(callback_); }
  void tell(const Event& event) const {
    if (callback_) callback_(event);
  }
  /// The common short form: something went another way than it should, and why.
  void tell(Event::Kind kind, std::string origin, std::string message) const {
    if (!callback_) return;
    Event event;
    event.kind = kind;
    event.origin = std::move(origin);
    event.message = std::move(message);
    callback_(event);
  }

 private:
  EventCallback callback_;
};

}  // namespace kiln
