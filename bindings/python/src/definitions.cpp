#include <map>
#include <string>
#include <utility>

#include "session_object.hpp"

namespace kiln::python {
namespace {

using Called = std::pair<std::string, std::string>;  // kind and label

// Under the interpreter's lock, and never destroyed: units may be made while the process ends.
std::map<Called, Unit>& definitions() {
  static auto& all = *new std::map<Called, Unit>();
  return all;
}

bool is_replaced(const UnitStatus& unit) {
  if (!unit.identity) return false;  // it was made just now, and nobody had time to hash it
  const auto known = definitions().find({unit.kind, unit.unit});
  return known != definitions().end() && known->second.identity() != *unit.identity;
}

// As the sums of SessionStatus are defined.
void count(SessionStatus& status, const UnitStatus& unit) {
  using State = UnitStatus::State;
  ++status.submitted;
  switch (unit.state) {
    case State::Ready: ++(unit.origin == Origin::Compiled ? status.compiled : status.found); break;
    case State::Failed: ++status.failed; break;
    case State::Cancelled: ++status.cancelled; break;
    case State::Queued:
    case State::Running: ++status.pending; break;
  }
}

// As Python itself tells whether there is a prompt: `sys.ps1` is there. IPython and Jupyter set it.
bool is_interactive() { return PySys_GetObject("ps1") != nullptr; }

}  // namespace

void note_definition(const Unit& unit) { definitions().insert_or_assign({unit.kind(), unit.label()}, unit); }

SessionStatus newest_of(const SessionStatus& status) {
  // In a program two units may well have one name.
  if (!is_interactive()) return status;
  SessionStatus newest;
  newest.wall_ms = status.wall_ms;
  for (const UnitStatus& unit : status.units) {
    if (is_replaced(unit)) continue;
    newest.units.push_back(unit);
    count(newest, unit);
  }
  return newest;
}

}  // namespace kiln::python
