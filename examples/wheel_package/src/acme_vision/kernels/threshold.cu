// flags[i] = 1 where a pixel is brighter than the limit, otherwise 0: what an exclusive scan turns into positions.
extern "C" __global__ void threshold(const float* pixels, int* flags, float limit, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) flags[i] = pixels[i] > limit;
}
