#pragma once

// A square grid in row-major order. Indices outside the grid are clamped to the nearest point.
struct Grid {
  int width;

  __device__ int inside(int at) const { return at < 0 ? 0 : at >= width ? width - 1 : at; }
  __device__ int at(int x, int y) const { return inside(y) * width + inside(x); }
};
