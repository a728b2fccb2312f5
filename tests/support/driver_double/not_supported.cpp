// Every name of the driver that the double does not know: it says so. Weak, so that a name which another file defines
// is that one; a macro, because a function cannot make functions.
#include "support/driver_double/enter.hpp"

namespace kiln::test::driver {
namespace {

DriverResult not_supported(const char* entry) {
  return enter(
      entry, [](Model&) { return DriverResult::NotSupported; }, Before::Nothing);
}

}  // namespace

#define KILN_DRIVER_NAME(name) \
  extern "C" __attribute__((weak)) DriverResult name() { return not_supported(#name); }
#include "support/driver_double/names.inc"

}  // namespace kiln::test::driver
