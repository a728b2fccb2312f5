// SPDX-License-Identifier: Apache-2.0
// A library with two bundles, which the test program opens.
#include <memory>

namespace {
std::shared_ptr<const void> kept;
}

/// Holds a reference until the library is unloaded or the process ends.
extern "C" __attribute__((visibility("default"))) void embedded_module_keep(const std::shared_ptr<const void>* what) {
  kept = *what;
}
