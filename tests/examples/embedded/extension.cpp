// SPDX-License-Identifier: Apache-2.0
// The C++ part of a Python package. It is loaded late, by a program that does not know kiln.
#include <cstdio>

#include <kiln/kiln.hpp>

#include "extension_units.hpp"

/// Returns the number of its units that had to be compiled; −1 if one is not available.
extern "C" __attribute__((visibility("default"))) int extension_compiled() {
  auto session = kiln::Session::open();
  if (!session) return -1;
  for (const kiln::Unit& unit : extension_units::all()) {
    if (const auto artifact = session->artifact(unit, kiln::Target::sm(90)); !artifact) {
      std::fprintf(stderr, "%s\n", artifact.error().message.c_str());
      return -1;
    }
  }
  return static_cast<int>(session->status().compiled);
}
