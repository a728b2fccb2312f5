#include <kiln/status.hpp>

namespace kiln {

const char* to_string(UnitStatus::State state) {
  switch (state) {
    case UnitStatus::State::Queued: return "queued";
    case UnitStatus::State::Running: return "running";
    case UnitStatus::State::Ready: return "ready";
    case UnitStatus::State::Failed: return "failed";
    case UnitStatus::State::Cancelled: return "cancelled";
  }
  return "unknown";
}

}  // namespace kiln
