// Common code of the stages of dissolve. An edge has the number of its first vertex in the input. Its `side` is the
// group's rank and, in the lowest bit, whether it must be reversed for the polygon to be on its left.
#pragma once

#include "columns.cuh"
#include "segments.cuh"

using Wide = unsigned long long;
constexpr unsigned kMost = 0xffffffffu;

__device__ inline size_t first_item() { return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline size_t item_step() { return static_cast<size_t>(gridDim.x) * blockDim.x; }
__device__ inline unsigned smaller(unsigned a, unsigned b) { return a < b ? a : b; }
__device__ inline bool is_valid(const unsigned* valid, int row) { return Validity{valid}[row]; }
__device__ inline int orientation(double ax, double ay, double bx, double by, double cx, double cy) {
  return orientation(Point{ax, ay}, Point{bx, by}, Point{cx, cy});
}

__device__ inline Wide mixed(Wide hash, Wide value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  hash = (hash ^ (hash >> 32)) * 0xbf58476d1ce4e5b9ull;
  return hash ^ (hash >> 29);
}

// Minus zero and zero are one coordinate.
__device__ inline Wide coordinate_bits(double value) {
  return value == 0 ? 0 : static_cast<Wide>(__double_as_longlong(value));
}

__device__ inline Wide mixed_vertex(Wide hash, double x, double y) {
  return mixed(mixed(hash, coordinate_bits(x)), coordinate_bits(y));
}

// Returns the bits by which edges and vertices are sorted; at least as many values as there are edges. Equal hashes are
// compared exactly afterwards. The largest value, `no_edge`, is that of a vertex at which no edge begins.
__device__ inline unsigned no_edge(unsigned bits) { return kMost >> (32 - bits); }
__device__ inline unsigned hash_of(Wide hash, unsigned bits) {
  return smaller(static_cast<unsigned>(hash >> (64 - bits)), no_edge(bits) - 1);
}

__device__ inline unsigned start_of(unsigned edge, unsigned side) { return edge + (side & 1); }
__device__ inline unsigned end_of(unsigned edge, unsigned side) { return edge + 1 - (side & 1); }

__device__ inline bool same_vertex(const double* x, const double* y, unsigned a, unsigned b) {
  return x[a] == x[b] && y[a] == y[b];
}
