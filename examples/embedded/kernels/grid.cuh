#pragma once

// A square grid, row by row. At its edges it has no neighbours: the nearest point stands for them.
struct Grid {
  int width;

  __device__ int inside(int at) const { return at < 0 ? 0 : at >= width ? width - 1 : at; }
  __device__ int at(int x, int y) const { return inside(y) * width + inside(x); }
};
