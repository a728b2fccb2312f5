#pragma once

#include <algorithm>
#include <vector>

#include "base/mutex.hpp"
#include "observe/observer.hpp"

namespace kiln::test {

/// Keeps every event that it is told of. It must outlive the observers that it made.
class EventLog {
 public:
  Observer observer() {
    return Observer([this](const Event& event) {
      const MutexLock lock(mutex_);
      events_.push_back(event);
    });
  }
  EventCallback callback() {
    return [told = observer()](const Event& event) { told.tell(event); };
  }
  std::vector<Event> of(Event::Kind kind) const {
    const MutexLock lock(mutex_);
    std::vector<Event> found;
    std::copy_if(events_.begin(), events_.end(), std::back_inserter(found),
                 [kind](const Event& event) { return event.kind == kind; });
    return found;
  }
  std::size_t count(Event::Kind kind) const { return of(kind).size(); }

 private:
  mutable Mutex mutex_;
  std::vector<Event> events_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln::test
