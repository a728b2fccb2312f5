#include "image.cuh"

// Writes the mean of the 3 × 3 pixels around each pixel, one thread per pixel.
template <class T>
__global__ void blur(const T* from, T* to, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const Image<T> image{from, width, height};
  float sum = 0;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) sum += image.at(x + dx, y + dy);
  }
  to[y * width + x] = static_cast<T>(sum / 9);
}
