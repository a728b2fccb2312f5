// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include <kiln/requirements.hpp>

namespace kiln {

/// Units that were requested before their driver was open, in request order. `add` hashes no source; removing a unit
/// costs time in proportion to the similar units, not to all pending ones. Not thread-safe.
class WaitingUnits {
 public:
  /// Returns false if this unit, by its address, is already pending.
  bool add(const Unit& unit);
  /// Removes all units that are equal to this one, regardless of the object that they were requested by.
  void remove_equal(const Unit& unit);
  /// Returns the units whose driver is of one of these kinds.
  Units of_kinds(const std::set<std::string>& kinds) const;
  /// Removes the units whose driver is of one of these kinds. Allocates no memory.
  void remove_kinds(const std::set<std::string>& kinds);
  const std::map<std::uint64_t, Unit>& units() const { return units_; }
  bool empty() const { return units_.empty(); }
  std::size_t size() const { return units_.size(); }

 private:
  std::map<std::uint64_t, Unit> units_;  // by the number of the request
  std::uint64_t last_ = 0;
  std::unordered_multimap<std::uint64_t, std::uint64_t> numbers_;  // by the fingerprint of the unit
};

}  // namespace kiln
