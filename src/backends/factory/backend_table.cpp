// SPDX-License-Identifier: Apache-2.0
#include "backends/factory/backend_table.hpp"

#include "backends/opencl/opencl_backend.hpp"
#include "base/mutex.hpp"

namespace kiln {
namespace {

/// All backends. Thread-safe.
struct BackendTable {
  Mutex mutex;
  std::vector<const BackendFactory*> backends KILN_GUARDED_BY(mutex) = {
      &opencl_backend(),
  };
};

BackendTable& table() {
  static BackendTable* const all = new BackendTable;  // never destroyed: threads of a session use it until the end
  return *all;
}

}  // namespace

const BackendFactory* find_backend(const std::string& kind) {
  BackendTable& all = table();
  const MutexLock lock(all.mutex);
  for (const BackendFactory* backend : all.backends) {
    if (backend->kind() == kind) return backend;
  }
  return nullptr;
}

void add_backend(const BackendFactory& backend) {
  BackendTable& all = table();
  const MutexLock lock(all.mutex);
  all.backends.push_back(&backend);
}

}  // namespace kiln
