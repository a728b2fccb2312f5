// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <kiln/key.hpp>
#include <kiln/unit.hpp>

namespace kiln {

/// What kiln's own tables need of a unit. Thread-safe.
struct detail::UnitAccess {
  /// Returns a digest over the key, the paths of the include roots and `served_by`. It is equal for units that this
  /// process looks up and compiles alike. Computed once; for in-memory tables, never stored.
  static const Digest& identity(const Unit& unit);
  /// Returns the identity if it was already computed, otherwise null. For callers that cannot afford to hash a source.
  static const Digest* identity_if_computed(const Unit& unit) noexcept;
  /// Returns an address that copies of one unit share. No other unit has it while one of the copies exists.
  static const void* address(const Unit& unit) noexcept;
  /// Returns a hash that equal units share and few other units have. It reads a few hundred bytes of a source of any
  /// length, so it takes some tens of nanoseconds; the identity of a large unit takes a millisecond. Computed once.
  static std::uint64_t fingerprint(const Unit& unit);
};
using detail::UnitAccess;

}  // namespace kiln
