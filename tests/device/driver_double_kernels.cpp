// Kernels on the host for driver_double_user: `nothing` says on which device it ran.
#include <cstdio>
#include <cstdlib>

#include "support/driver_double/control_table.hpp"

extern "C" __attribute__((visibility("default"))) void kiln_double_kernels(const kiln::test::DoubleControl* control) {
  const auto nothing = [](const kiln::test::DoubleLaunch* launch, void*) {
    std::FILE* const file = std::fopen(std::getenv("KILN_TEST_RAN"), "w");
    if (file == nullptr) return;
    std::fprintf(file, "%s on %d", launch->kernel, launch->device);
    std::fclose(file);
  };
  control->on_launch("nothing", nothing, nullptr);
}
