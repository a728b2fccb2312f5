#pragma once

// An image in row-major order. Coordinates outside the image are clamped to its border.
template <class T>
struct Image {
  const T* pixels;
  int width;
  int height;

  __device__ int clamp(int at, int size) const { return at < 0 ? 0 : at >= size ? size - 1 : at; }
  __device__ float at(int x, int y) const { return pixels[clamp(y, height) * width + clamp(x, width)]; }
};
