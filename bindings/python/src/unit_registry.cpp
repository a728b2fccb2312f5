// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>
#include <utility>

#include "core/unit_access.hpp"
#include "session_object.hpp"

namespace kiln::python {
namespace {

using Called = std::pair<std::string, std::string>;  // kind and label

// Guarded by the GIL and never destroyed: units can be created while the process ends.
std::map<Called, Unit>& definitions() {
  static auto& all = *new std::map<Called, Unit>();
  return all;
}

bool is_replaced(const UnitStatus& unit) {
  if (!unit.identity) return false;  // just created, not hashed yet
  const auto known = definitions().find({unit.kind, unit.unit});
  return known != definitions().end() && UnitAccess::identity(known->second) != *unit.identity;
}

// Counts as SessionStatus defines it.
void count(SessionStatus& status, const UnitStatus& unit) {
  using State = UnitStatus::State;
  ++status.submitted;
  switch (unit.state) {
    case State::Ready: ++(unit.origin == Origin::Compiled ? status.compiled : status.cached); break;
    case State::Failed: ++status.failed; break;
    case State::Cancelled: ++status.cancelled; break;
    case State::Queued:
    case State::Running: ++status.pending; break;
  }
}

// Python itself checks `sys.ps1` for an interactive prompt. IPython and Jupyter set it.
bool is_interactive() { return PySys_GetObject("ps1") != nullptr; }

}  // namespace

void register_unit(const Unit& unit) {
  // Not needed in a program, which can generate an unbounded number of units.
  if (is_interactive()) definitions().insert_or_assign({unit.kind(), unit.label()}, unit);
}

void forget_definition(const Unit& unit) {
  const auto known = definitions().find({unit.kind(), unit.label()});
  if (known != definitions().end() && known->second == unit) definitions().erase(known);
}

SessionStatus without_replaced_units(const SessionStatus& status) {
  // In a program, two units can share a name.
  if (!is_interactive()) return status;
  SessionStatus newest;
  newest.wall_ms = status.wall_ms;
  newest.released = status.released;
  for (const UnitStatus& unit : status.units) {
    if (is_replaced(unit)) continue;
    newest.units.push_back(unit);
    count(newest, unit);
  }
  return newest;
}

}  // namespace kiln::python
