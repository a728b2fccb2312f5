// What a Python package has that is written in C++: it is loaded late, by somebody who knows nothing of kiln.
#include <cstdio>

#include <kiln/kiln.hpp>

#include "extension_units.hpp"

/// How many of its units had to be compiled; −1 where one is not to be had.
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
