// Polygons as WKB: a row with one part is a POLYGON, one with several a MULTIPOLYGON, one with none an empty POLYGON,
// and a null row has no bytes. `parts` is the exclusive scan of the shells, so that every position has a closed form.
#include "wkb.cuh"

extern "C" __global__ void wkb_shells(unsigned rings, const unsigned* shells, unsigned* parts) {
  const unsigned ring = blockIdx.x * blockDim.x + threadIdx.x;
  if (ring < rings) parts[ring] = Validity{shells}[static_cast<int>(ring)] ? 1 : 0;
}

extern "C" __global__ void wkb_polygon_sizes(int rows, const unsigned* valid, const int* rings, const int* offsets,
                                             const unsigned* parts, unsigned* sizes) {
  const int row = first_row();
  if (row >= rows) return;
  const int first = rings[row];
  const int last = rings[row + 1];
  const unsigned count = parts[last] - parts[first];
  const unsigned long long size = kWkbHeader + (count > 1 ? 9ULL * count : 0) +
                                  4ULL * static_cast<unsigned>(last - first) +
                                  16ULL * static_cast<unsigned>(offsets[last] - offsets[first]);
  const unsigned saturated = size > 0xffffffffULL ? 0xffffffffu : static_cast<unsigned>(size);
  sizes[row] = Validity{valid}[row] ? saturated : 0;
}

extern "C" __global__ void wkb_rows(int rows, const unsigned* valid, const int* rings, const unsigned* parts,
                                    const unsigned* places, unsigned char* bytes) {
  const int row = first_row();
  if (row >= rows || !Validity{valid}[row]) return;
  const unsigned count = parts[rings[row + 1]] - parts[rings[row]];
  put_type(bytes + places[row], count > 1 ? kWkbMultiPolygon : kWkbPolygon);
  put_uint(bytes + places[row] + 5, count > 1 ? count : static_cast<unsigned>(rings[row + 1] - rings[row]));
}

// Writes the number of vertices of each ring and, where a part of several begins, its header. `starts` gets the place
// of the first coordinate.
extern "C" __global__ void wkb_rings(unsigned ring_count, int rows, const int* rings, const int* offsets,
                                     const unsigned* parts, const unsigned* places, unsigned char* bytes,
                                     unsigned* starts) {
  const int ring = first_row();
  if (ring >= static_cast<int>(ring_count)) return;
  const int row = row_of(rings, rows, ring);
  const int first = rings[row];
  const int last = rings[row + 1];
  const bool several = parts[last] - parts[first] > 1;
  const unsigned at = places[row] + kWkbHeader + (several ? kWkbHeader * (parts[ring + 1] - parts[first]) : 0) +
                      4 * static_cast<unsigned>(ring - first) +
                      16 * static_cast<unsigned>(offsets[ring] - offsets[first]);
  if (several && parts[ring + 1] != parts[ring]) {
    int next = ring + 1;
    while (next < last && parts[next + 1] == parts[next]) ++next;
    put_type(bytes + at - kWkbHeader, kWkbPolygon);
    put_uint(bytes + at - 4, static_cast<unsigned>(next - ring));
  }
  put_uint(bytes + at, static_cast<unsigned>(offsets[ring + 1] - offsets[ring]));
  starts[ring] = at + 4;
}

extern "C" __global__ void wkb_vertices(unsigned vertices, unsigned ring_count, const int* offsets,
                                        const unsigned* starts, const double* x, const double* y,
                                        unsigned char* bytes) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= vertices) return;
  const int ring = row_of(offsets, static_cast<int>(ring_count), static_cast<int>(i));
  unsigned char* const at = bytes + starts[ring] + 16 * (i - static_cast<unsigned>(offsets[ring]));
  put_double(at, x[i]);
  put_double(at + 8, y[i]);
}
