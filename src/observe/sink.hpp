#pragma once

#include <kiln/event.hpp>

namespace kiln {

/// One that listens to events. `tell` is called on whichever thread the event happened, by any number at once: it must
/// be quick, must not throw and must not call kiln.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void tell(const Event& event) = 0;
};

}  // namespace kiln
