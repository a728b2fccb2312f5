// SPDX-License-Identifier: Apache-2.0
// Configuration from the environment, for programs under test that do not know the fake driver.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "support/fakes/cuda_driver/enter.hpp"

namespace kiln::test::driver {

extern "C" const FakeControl* kiln_double_control();

namespace {

/// KILN_FAKE_DRIVER_KERNELS: a shared library with host kernels, which its `kiln_double_kernels` registers.
void load_host_kernels(const char* path) {
  void* const library = dlopen(path, RTLD_NOW);
  void* const found = library == nullptr ? nullptr : dlsym(library, "kiln_double_kernels");
  if (found == nullptr) {
    std::fprintf(stderr, "KILN_FAKE_DRIVER_KERNELS=%s has no kiln_double_kernels\n", path);
    std::abort();
  }
  reinterpret_cast<void (*)(const FakeControl*)>(found)(kiln_double_control());
}

/// KILN_FAKE_DRIVER_REPORT: a file that gets `name number` lines when the process ends.
void write_report() {
  std::FILE* const file = std::fopen(std::getenv("KILN_FAKE_DRIVER_REPORT"), "w");
  if (file == nullptr) return;
  const FakeCounts counts = kiln_double_control()->counts();
  with_model([&](Model& model) {
    std::fprintf(file, "launches %zu\nloads %zu\n", model.launches.size(), model.loads.size());
    for (const auto& [entry, calls] : model.calls) std::fprintf(file, "calls.%s %zu\n", entry.c_str(), calls);
  });
  std::fprintf(file, "contexts %zu\nstreams %zu\nevents %zu\nlibraries %zu\npools %zu\nallocations %zu\n",
               counts.contexts, counts.streams, counts.events, counts.libraries, counts.pools, counts.allocations);
  std::fprintf(file, "stale_uses %zu\nlost_captures %zu\npending %zu\n", counts.stale_uses, counts.lost_captures,
               counts.pending);
  std::fclose(file);
}

}  // namespace

void use_environment() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (const char* path = std::getenv("KILN_FAKE_DRIVER_KERNELS")) load_host_kernels(path);
    if (std::getenv("KILN_FAKE_DRIVER_REPORT") != nullptr) std::atexit(write_report);
  });
}

}  // namespace kiln::test::driver
