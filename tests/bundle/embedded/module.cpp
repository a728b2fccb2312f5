// A library that has two bundles in it, and that the test program opens.
#include <memory>

namespace {
std::shared_ptr<const void> kept;
}

/// Keeps something until the library is unloaded or the process ends.
extern "C" __attribute__((visibility("default"))) void embedded_module_keep(const std::shared_ptr<const void>* what) {
  kept = *what;
}
