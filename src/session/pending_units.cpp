// SPDX-License-Identifier: Apache-2.0
#include "session/pending_units.hpp"

#include <new>

#include "core/unit_access.hpp"
#include "session/driver_backend.hpp"

namespace kiln {

bool WaitingUnits::add(const Unit& unit) {
  const std::uint64_t fingerprint = UnitAccess::fingerprint(unit);
  const auto [first, last] = numbers_.equal_range(fingerprint);
  for (auto at = first; at != last; ++at) {
    if (UnitAccess::address(units_.at(at->second)) == UnitAccess::address(unit)) return false;
  }
  units_.emplace_hint(units_.end(), ++last_, unit);
  try {
    numbers_.emplace(fingerprint, last_);
  } catch (const std::bad_alloc&) {
    units_.erase(last_);
    throw;
  }
  return true;
}

Units WaitingUnits::of_kinds(const std::set<std::string>& kinds) const {
  Units found;
  for (const auto& [number, unit] : units_) {
    if (kinds.count(driver_kind(unit)) != 0) found.push_back(unit);
  }
  return found;
}

void WaitingUnits::remove_kinds(const std::set<std::string>& kinds) {
  std::erase_if(units_, [&](const auto& entry) { return kinds.count(driver_kind(entry.second)) != 0; });
  std::erase_if(numbers_, [&](const auto& entry) { return units_.count(entry.second) == 0; });
}

void WaitingUnits::remove_equal(const Unit& unit) {
  const auto [first, last] = numbers_.equal_range(UnitAccess::fingerprint(unit));
  for (auto at = first; at != last;) {
    if (units_.at(at->second) == unit) {
      units_.erase(at->second);
      at = numbers_.erase(at);
    } else {
      ++at;
    }
  }
}

}  // namespace kiln
