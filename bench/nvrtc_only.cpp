// SPDX-License-Identifier: Apache-2.0
// A program that compiles the large unit, or without include roots the small one, with NVRTC alone, for cold_compile:
//   kiln-bench-nvrtc LIBNVRTC [INCLUDE_ROOT…]
// It prints its result in the format of hit.cpp.
#include <cstdio>

#include "bench/support/bare_nvrtc.hpp"
#include "bench/support/harness.hpp"
#include "bench/support/units.hpp"

int main(int argc, char** argv) {
  const std::int64_t start = kiln::bench::now_ns();
  if (argc < 2) return 2;
  const auto nvrtc = kiln::NvrtcLibrary::open(argv[1]);
  if (!nvrtc) return 1;
  const kiln::Unit unit = argc == 2 ? kiln::bench::small_unit() : kiln::bench::large_unit({argv + 2, argv + argc});
  const auto cubin = kiln::bench::compile_with_bare_nvrtc(**nvrtc, unit);
  if (!cubin) return 1;
  std::printf("%lld %zu\n", static_cast<long long>(kiln::bench::now_ns() - start), cubin->size());
  return 0;
}
