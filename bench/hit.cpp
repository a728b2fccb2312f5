// SPDX-License-Identifier: Apache-2.0
// A program that uses kiln as user programs do, for new_process_hit. Prints the nanoseconds from main to the verified
// bytes, and their number.
#include <time.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <kiln/kiln.hpp>

#include "bench/support/units.hpp"

int main(int argc, char** argv) {
  timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  if (argc < 2) return 2;
  const bool large = std::strcmp(argv[1], "large") == 0;
  const kiln::Unit unit = large ? kiln::bench::large_unit({argv + 2, argv + argc}) : kiln::bench::small_unit();
  auto session = kiln::Session::open();
  if (!session) return 1;
  const auto artifact = session->artifact(unit, kiln::Target{kiln::bench::kArchitecture, kiln::Form::Cubin});
  if (!artifact) {
    std::fprintf(stderr, "%s\n", artifact.error().message.c_str());
    return 1;
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  std::printf("%lld %zu\n", (end.tv_sec - start.tv_sec) * 1'000'000'000LL + end.tv_nsec - start.tv_nsec,
              artifact->bytes.size());
  return 0;
}
