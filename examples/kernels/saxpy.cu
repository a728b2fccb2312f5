// y = a * x + y, one thread per element. The grid can be rounded up.
extern "C" __global__ void saxpy(unsigned n, float a, const float* x, float* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}

// x = a * x. Request it with a name expression such as scale<float>.
template <class T>
__global__ void scale(unsigned n, T a, T* x) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= a;
}
