// SPDX-License-Identifier: Apache-2.0
#include "examples/host_kernels.hpp"

#include <stddef.h>

#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

namespace {

// The environment that the CUDA source needs. Threads run one after another, which is correct for kernels whose threads
// do not communicate.
struct Position {
  unsigned x, y, z;
};
thread_local Position blockIdx, blockDim, threadIdx;

#define __device__
#define __global__
#define __launch_bounds__(threads)
double __longlong_as_double(long long bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

#include "examples/many_kernels/kernels/semiring.cu"

using kiln::test::FakeLaunch;

template <class T>
T argument(const FakeLaunch& launch, std::size_t index) {
  if constexpr (std::is_pointer_v<T>) {
    const auto address = argument<kiln::cuda::DevicePointer>(launch, index);
    return static_cast<T>(launch.host(address, sizeof(std::remove_pointer_t<T>)));
  } else {
    T value{};
    std::memcpy(&value, launch.arguments[index].data, sizeof value);
    return value;
  }
}

template <class... Types, std::size_t... Indices>
void run_all(void (*kernel)(Types...), const FakeLaunch& launch, std::index_sequence<Indices...>) {
  // A launch with wrong arguments does not change the output, which the check detects.
  if (launch.argument_count != sizeof...(Types)) return;
  if (((launch.arguments[Indices].size != sizeof(Types)) || ...)) return;
  const std::tuple<Types...> arguments(argument<Types>(launch, Indices)...);
  blockDim = {launch.block[0], launch.block[1], launch.block[2]};
  for (unsigned z = 0; z < launch.grid[2] * blockDim.z; ++z) {
    for (unsigned y = 0; y < launch.grid[1] * blockDim.y; ++y) {
      for (unsigned x = 0; x < launch.grid[0] * blockDim.x; ++x) {
        blockIdx = {x / blockDim.x, y / blockDim.y, z / blockDim.z};
        threadIdx = {x % blockDim.x, y % blockDim.y, z % blockDim.z};
        kernel(std::get<Indices>(arguments)...);
      }
    }
  }
}

template <class... Types>
void run_all(void (*kernel)(Types...), const FakeLaunch& launch) {
  run_all(kernel, launch, std::index_sequence_for<Types...>());
}

}  // namespace

namespace kiln::test {

static HostKernel named(const char* name, FakeKernel run) { return {name, run}; }

#define ENTRY(name) named(#name, [](const FakeLaunch* launch, void*) { run_all(name, *launch); })
#define ENTRIES(kernel, semiring)                                                                       \
  ENTRY(kernel##_##semiring##_f32), ENTRY(kernel##_##semiring##_f64), ENTRY(kernel##_##semiring##_i32), \
      ENTRY(kernel##_##semiring##_i64)

std::vector<HostKernel> host_kernels() {
  return {ENTRIES(gemm, max_plus),     ENTRIES(gemm, min_plus),     ENTRIES(gemm, max_times),
          ENTRIES(argmax, max_plus),   ENTRIES(argmax, min_plus),   ENTRIES(argmax, max_times),
          ENTRY(backward_a_f32),       ENTRY(backward_a_f64),       ENTRY(backward_b_f32),
          ENTRY(backward_b_f64),       ENTRY(batched_max_plus_f32), ENTRY(batched_min_plus_f32),
          ENTRY(batched_max_times_f32)};
}

}  // namespace kiln::test
