// SPDX-License-Identifier: Apache-2.0
// Measures the memory that a session keeps for a program that generates an unbounded number of kernels. Usage:
// release_memory_main UNITS [--keep]
#include <kiln/cuda.hpp>
#include <kiln/session.hpp>

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "support/fakes/cuda_driver/control.hpp"
#include "support/fakes/fake_cubin.hpp"

namespace kiln::test {
namespace {

constexpr std::size_t kBatch = 100;
constexpr std::size_t kUnitSize = 80'000;

double resident_mb() {
  std::ifstream statm("/proc/self/statm");
  long pages = 0;
  statm >> pages >> pages;
  return static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

Units batch(const CubinCompiler& compiler, std::size_t first, std::size_t count) {
  Units units;
  for (std::size_t i = first; i < first + count; ++i) {
    std::string padding = "unit " + std::to_string(i) + ' ';
    padding.resize(kUnitSize, static_cast<char>('a' + i % 26));
    units.push_back(compiler.unit("generated_" + std::to_string(i) + ".cu", padding));
  }
  return units;
}

int run(std::size_t count, bool release) {
  const TemporaryDirectory directory;
  const CubinCompiler compiler;
  FakeCudaDriver driver("sm_80");
  SessionOptions options;
  options.settings = {{"cache.dir", directory.path("cache")}, {"driver", FakeCudaDriver::path()}};
  Session session = Session::open(options).value();
  if (!session.make_current(Backend::Cuda, 0)) return 1;
  const auto start = std::chrono::steady_clock::now();
  double before = 0;
  for (std::size_t done = 0; done < count; done += kBatch) {
    const Units units = batch(compiler, done, kBatch);
    session.request(units);
    for (const Unit& unit : units) {
      const auto kernel = session.get(unit, "one", std::chrono::seconds(600));
      if (!kernel || !kernel->launch({Grid(1), Block(1), cuda::default_stream})) {
        std::fprintf(stderr, "%s\n", kernel ? "a launch failed" : kernel.error().message.c_str());
        return 1;
      }
    }
    if (release) session.release(units);
    if (done == 0) before = resident_mb();  // includes everything that is allocated once
    if (done / kBatch % 100 == 99) std::fprintf(stderr, "%zu units, %.0f MB\n", done + kBatch, resident_mb() - before);
  }
  const double grown = resident_mb() - before;
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("figure: %zu units of %zu bytes, %s: the process has grown by %.1f MB (%.0f s)\n", count, kUnitSize,
              release ? "each released" : "none released", grown, took);
  std::fflush(stdout);  // closing the session can take long: the double checks all libraries for each unload
  return 0;
}

}  // namespace
}  // namespace kiln::test

int main(int argc, char** argv) {
  const std::size_t count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000;
  return kiln::test::run(count, argc <= 2);
}
