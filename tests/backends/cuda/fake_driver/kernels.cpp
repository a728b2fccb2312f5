// SPDX-License-Identifier: Apache-2.0
// Host kernels for fake_driver_user: `nothing` reports the device on which it ran.
#include <cstdio>
#include <cstdlib>

#include "support/fakes/cuda_driver/control_table.hpp"

extern "C" __attribute__((visibility("default"))) void kiln_double_kernels(const kiln::test::FakeControl* control) {
  const auto nothing = [](const kiln::test::FakeLaunch* launch, void*) {
    std::FILE* const file = std::fopen(std::getenv("KILN_TEST_RAN"), "w");
    if (file == nullptr) return;
    std::fprintf(file, "%s on %d", launch->kernel, launch->device);
    std::fclose(file);
  };
  control->on_launch("nothing", nothing, nullptr);
}
