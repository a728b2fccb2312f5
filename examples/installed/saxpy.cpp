// SPDX-License-Identifier: Apache-2.0
// Compiles a kernel for a GPU that this machine need not have, and prints where the artifact came from: the compiler in
// the first run, the disk cache in later runs.
#include <cstdio>

#include <kiln/kiln.hpp>

int main() {
  const kiln::Unit unit = kiln::Unit::cuda("saxpy.cu", R"(
    extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
      const int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) y[i] = a * x[i] + y[i];
    })")
                              .with_entry("saxpy");

  kiln::SessionOptions options;
  options.on_event = [](const kiln::Event& event) {
    std::printf("%s %s %s %.2f ms %s\n", kiln::event_name(event), event.unit.c_str(), event.origin.c_str(), event.ms,
                event.message.c_str());
  };
  auto session = kiln::Session::open(options);
  if (!session) {
    std::fprintf(stderr, "cannot open kiln: %s\n", session.error().message.c_str());
    return 1;
  }
  const auto artifact = session->artifact(unit, kiln::Target::sm(80));
  if (!artifact) {
    std::fprintf(stderr, "%s\n%s", artifact.error().message.c_str(), artifact.error().log.c_str());
    return 1;
  }
  std::printf("kiln %s: %zu bytes for %s, kernel %s\n", kiln::version(), artifact->bytes.size(),
              artifact->target.name().c_str(), artifact->symbol("saxpy")->c_str());
  return 0;
}
