// SPDX-License-Identifier: Apache-2.0
#include "core/fleet_place.hpp"

#include <cstring>

#include "base/hash.hpp"

namespace kiln {

FleetPlace FleetPlace::of_host(const std::string& identity) {
  const Digest digest = sha256("kiln fleet place 1 " + identity);
  std::uint64_t number = 0;
  std::memcpy(&number, digest.bytes.data(), sizeof number);
  return FleetPlace(static_cast<double>(number >> 11U) * 0x1.0p-53);
}

}  // namespace kiln
