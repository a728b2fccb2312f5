// SPDX-License-Identifier: Apache-2.0
// Every driver function that the fake driver does not implement returns "not supported". Weak, so that a definition in
// another file takes precedence; a macro, because a function cannot define functions.
#include "support/fakes/cuda_driver/enter.hpp"

namespace kiln::test::driver {
namespace {

DriverResult not_supported(const char* entry) {
  return enter(
      entry, [](Model&) { return DriverResult::NotSupported; }, Before::Nothing);
}

}  // namespace

#define KILN_DRIVER_NAME(name) \
  extern "C" __attribute__((weak)) DriverResult name() { return not_supported(#name); }
#include "support/fakes/cuda_driver/names.inc"

}  // namespace kiln::test::driver
