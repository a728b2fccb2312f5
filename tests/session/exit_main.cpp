// SPDX-License-Identifier: Apache-2.0
// A program that exits while kiln is working: `exit_main WHAT HOW FOLDER UNTIL` states the work in progress, how to
// exit, the directory of the headers, and the delay in milliseconds or `compiled` for the first compile.
#include <kiln/session.hpp>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

kiln::Units opencl_units() {
  kiln::Units units;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    units.push_back(kiln::Unit::opencl(name, "kernel void f(global int* x) { *x = 1; }").with_entry("f"));
  }
  return units;
}

// Includes a header, so that it is compiled in a worker process.
kiln::Units cuda_units(const char* directory) {
  kiln::Units units;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    units.push_back(kiln::Unit::cuda(name, "#include \"slow.h\"\nextern \"C\" __global__ void f(int* x) { *x = 1; }")
                        .with_include_root(directory)
                        .with_entry("f"));
  }
  return units;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 99;
  const std::string what = argv[1];
  const std::string how = argv[2];
  kiln::Session& session = kiln::Session::shared();
  if (what == "opencl") session.request(opencl_units());
  if (what == "cuda") session.request(cuda_units(argv[3]), kiln::Target::sm(80));
  const std::string until = argc > 4 ? argv[4] : "0";
  if (until == "compiled") {
    while (session.status().compiled == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(until)));
  }
  if (how == "return") return 0;
  if (how == "exit") std::exit(0);
  if (how == "thread") std::thread([] { std::exit(0); }).join();
  return 98;
}
