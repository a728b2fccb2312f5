/* cuda */
#include <thrust/host_vector.h>
#include <torch/torch.h>
#include <kiln/kiln.hpp>
#define BLOCK 128
#define SYNC(s) do { cudaStreamSynchronize(s); } while (0)
namespace a {
struct S : B<int> {
  S() : x{1}, y(2) { cudaDeviceSynchronize(); }
  template <class T> auto m(T t) const -> std::vector<T> { return {t.template item<T>()}; }
};
const Operation op("spatial.sjoin", on_device(&device::f));
__global__ void refine(float* x) { for (;;) x[0] += 1; }
void f(int n, int b) {
  int h_count = 0;
  dim3 block(16, 16);
  thrust::host_vector<int> h = d;
  for (int i = 0; i < n; ++i) {
    cudaMalloc(&p, 4);
    if (i) refine<<<n, BLOCK>>>(x); else refine<<<dim3(1), block, 0, s>>>(x);
    cudaMemcpy(&h_count, d, 4, cudaMemcpyDeviceToHost);
  }
  while (h_count) do { cuLaunchKernel(k, n, 1, 1, 256, 1, 1, 0, s, a, e); } while (h_count > 0);
  g([&] { x.cpu(); y = R"x(item())x"; });  // kiln-audit: ignore
#if 0
  cudaDeviceSynchronize();
#endif
}
}
