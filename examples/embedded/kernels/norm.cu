// *sum += x[0]² + … + x[n - 1]². Request it with a name expression such as sum_of_squares<float>.
template <class T>
__global__ void sum_of_squares(int n, const T* x, T* sum) {
  T part = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) part += x[i] * x[i];
  for (int offset = 16; offset > 0; offset /= 2) part += __shfl_down_sync(0xffffffffu, part, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, part);
}
