// The program that pages call ./app. It requests the units of the project's kiln.toml as artifacts for an architecture,
// because there is no GPU here. KILN_RECORD, KILN_BUNDLES and the other variables work as in any program.
#include <cstdio>
#include <cstdlib>

#include <kiln/kiln.hpp>

#include "project_units.hpp"

int main() {
  const char* wanted = std::getenv("ARCH");
  kiln::Session session = kiln::Session::open().value();
  for (const kiln::Unit& unit : project_units::all()) {
    const auto artifact = session.artifact(unit, kiln::Target::parse(wanted != nullptr ? wanted : "sm_80").value());
    if (!artifact) {
      std::fprintf(stderr, "%s: %s\n", unit.name().c_str(), artifact.error().message.c_str());
      return 1;
    }
  }
  return 0;
}
