// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kiln/event.hpp>

namespace kiln {

/// A receiver of events. `on_event` is called on the thread of the event, by any number of threads at once. It must be
/// fast, must not throw and must not call kiln.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_event(const Event& event) = 0;
};

}  // namespace kiln
