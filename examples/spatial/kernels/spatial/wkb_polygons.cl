// Polygons as WKB: a row with one part is a POLYGON, one with several a MULTIPOLYGON, one with none an empty POLYGON,
// and a null row has no bytes. `parts` is the exclusive scan of the shells, so that every position has a closed form.

__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void wkb_shells(uint rings, __global const uint* shells, __global uint* parts) {
  const size_t end = end_of_items(rings);
  for (size_t ring = first_item(rings); ring < end; ring += ROWS) parts[ring] = is_valid(shells, (int)ring) ? 1 : 0;
}

__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void wkb_polygon_sizes(int rows, __global const uint* valid, __global const int* rings, __global const int* offsets,
                       __global const uint* parts, __global uint* sizes) {
  const size_t end = end_of_items(rows);
  for (size_t row = first_item(rows); row < end; row += ROWS) {
    const int first = rings[row];
    const int last = rings[row + 1];
    const uint count = parts[last] - parts[first];
    const ulong size = WKB_HEADER + (count > 1 ? (ulong)WKB_HEADER * count : 0) + 4 * (ulong)(last - first) +
                       16 * (ulong)(offsets[last] - offsets[first]);
    sizes[row] = is_valid(valid, (int)row) ? (uint)min(size, (ulong)UINT_MAX) : 0;
  }
}

__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void wkb_rows(int rows, __global const uint* valid, __global const int* rings, __global const uint* parts,
              __global const uint* places, __global uchar* bytes) {
  const size_t end = end_of_items(rows);
  for (size_t row = first_item(rows); row < end; row += ROWS) {
    if (!is_valid(valid, (int)row)) continue;
    const uint count = parts[rings[row + 1]] - parts[rings[row]];
    put_type(bytes + places[row], count > 1 ? WKB_MULTIPOLYGON : WKB_POLYGON);
    put_uint(bytes + places[row] + 5, count > 1 ? count : (uint)(rings[row + 1] - rings[row]));
  }
}

// Writes the number of vertices of each ring and, where a part of several begins, its header. `starts` gets the place
// of the first coordinate.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void wkb_rings(uint ring_count, int rows, __global const int* rings, __global const int* offsets,
               __global const uint* parts, __global const uint* places, __global uchar* bytes, __global uint* starts) {
  const size_t end = end_of_items(ring_count);
  for (size_t ring = first_item(ring_count); ring < end; ring += ROWS) {
    const int row = row_of(rings, rows, (int)ring);
    const int first = rings[row];
    const int last = rings[row + 1];
    const bool several = parts[last] - parts[first] > 1;
    const uint at = places[row] + WKB_HEADER + (several ? WKB_HEADER * (parts[ring + 1] - parts[first]) : 0) +
                    4 * (uint)(ring - first) + 16 * (uint)(offsets[ring] - offsets[first]);
    if (several && parts[ring + 1] != parts[ring]) {
      int next = (int)ring + 1;
      while (next < last && parts[next + 1] == parts[next]) ++next;
      put_type(bytes + at - WKB_HEADER, WKB_POLYGON);
      put_uint(bytes + at - 4, (uint)(next - (int)ring));
    }
    put_uint(bytes + at, (uint)(offsets[ring + 1] - offsets[ring]));
    starts[ring] = at + 4;
  }
}

__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void wkb_vertices(uint vertices, uint ring_count, __global const int* offsets, __global const uint* starts,
                  __global const double* x, __global const double* y, __global uchar* bytes) {
  const size_t end = end_of_items(vertices);
  for (size_t i = first_item(vertices); i < end; i += ROWS) {
    const int ring = row_of(offsets, (int)ring_count, (int)i);
    __global uchar* const at = bytes + starts[ring] + 16 * (uint)((int)i - offsets[ring]);
    put_double(at, x[i]);
    put_double(at + 8, y[i]);
  }
}
