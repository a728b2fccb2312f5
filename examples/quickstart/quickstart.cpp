// SPDX-License-Identifier: Apache-2.0
// Runs a kernel that is compiled at run time. Only the first run of this program compiles it.
#include <cstdio>
#include <vector>

#include <kiln/kiln.hpp>
#include <kiln/stream.hpp>

static const kiln::Unit saxpy = kiln::Unit::opencl("saxpy.cl", R"(
    kernel void saxpy(float a, global const float* x, global float* y) {
      y[get_global_id(0)] += a * x[get_global_id(0)];
    })")
                                    .with_entry("saxpy");
static const kiln::Requirements requirements{"quickstart", [] { return kiln::Units{saxpy}; }};

int main() {
  kiln::Session session = kiln::Session::open().value();
  session.request(requirements);  // returns immediately; a background thread looks in the cache and compiles if needed
  const kiln::Stream stream = session.stream(kiln::Backend::OpenCl).value();
  std::vector<float> x(1024, 2), y(1024, 1);
  const kiln::Buffer device_x = stream.copy_of(x).value(), device_y = stream.copy_of(y).value();
  const kiln::Kernel kernel = session.get(saxpy).value();  // waits for this kernel only if it is not ready
  kernel.launch({kiln::Grid(16), kiln::Block(64), stream}, 3.0f, device_x, device_y).value();
  stream.download(y.data(), device_y, device_y.size()).value();
  const bool right = y == std::vector<float>(1024, 3.0f * 2 + 1);
  std::printf("1024 results are %s; kernels compiled: %zu\n", right ? "right" : "wrong", session.status().compiled);
  return right ? 0 : 1;
}
