// SPDX-License-Identifier: Apache-2.0
// A program that is linked with kiln and requests units on a machine without a GPU runtime. It prints its final state
// to standard output. The marks on standard error show a tracer where the program itself begins and ends.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <kiln/cccl.hpp>
#include <kiln/kiln.hpp>

namespace {

constinit const kiln::Requirements requirements{"cpu_only", [] {
                                                  return kiln::Units{kiln::Unit::cuda("k.cu", "").with_entry("k"),
                                                                     kiln::Unit::opencl("k.cl", "").with_entry("k"),
                                                                     kiln::cccl::reduce<float>()};
                                                }};

bool mark(const char* text, std::size_t size) { return write(2, text, size) == static_cast<ssize_t>(size); }

void print_libraries() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    for (const char* name : {"libcuda", "libOpenCL", "libpocl", "libnvrtc", "libnvJitLink", "libcccl"}) {
      if (line.find(name) != std::string::npos) std::printf("mapped %s\n", line.c_str());
    }
  }
}

}  // namespace

int main() {
  if (!mark("MAIN\n", 5)) return 2;
  {
    auto session = kiln::Session::open();
    if (!session) return 2;
    session->request(requirements);
    session->request(requirements);
    const std::vector<kiln::NotReady> not_ready = kiln::WarmupPlan("all").stage(requirements).ensure_warm(*session);
    if (!mark("END\n", 4)) return 2;
    for (const kiln::NotReady& unit : not_ready)
      std::printf("not ready %s: %s\n", unit.unit.c_str(), unit.reason.c_str());
    std::printf("submitted %zu\n", session->status().submitted);
    std::printf("threads %td\n", std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
    print_libraries();
    if (!mark("MAIN\n", 5)) return 2;
  }
  return mark("END\n", 4) ? 0 : 2;
}
