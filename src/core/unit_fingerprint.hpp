#pragma once

#include <cstdint>

#include <kiln/unit.hpp>

namespace kiln {

/// Returns a hash that equal units share and few other units have. It reads a few hundred bytes of a source of any
/// length, so it takes some tens of nanoseconds; the identity of a large unit takes a millisecond.
std::uint64_t fingerprint_of(const Unit& unit);

}  // namespace kiln
