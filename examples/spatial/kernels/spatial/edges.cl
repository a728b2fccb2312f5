// The boundary edges of groups: of the edges of a coverage, those that occur once in their group. An edge that two
// polygons share occurs twice, in opposite directions, and is inside.

// Returns the vertex before or after `i` in a ring that has other coordinates; `i` if there is none. `last` is the
// closing vertex, which repeats `first`.
int other_vertex(__global const double* x, __global const double* y, int first, int last, int i, int step) {
  for (int k = i + step; k != i; k += step) {
    if (k < first) k = last - 1;
    if (k >= last) k = first;
    if (x[k] != x[i] || y[k] != y[i]) return k;
    if (k == i) break;
  }
  return i;
}

// Finds the rings that must be reversed: shells that turn right and holes that turn left. A ring turns as it does at
// its lowest leftmost vertex.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void ring_sides(uint rings, __global const int* offsets, __global const uint* shells, __global const double* x,
                __global const double* y, __global uchar* reversed) {
  const size_t end = end_of_items(rings);
  for (size_t ring = first_item(rings); ring < end; ring += ROWS) {
    const int first = offsets[ring];
    const int last = offsets[ring + 1] - 1;
    reversed[ring] = 0;
    if (last <= first) continue;
    int lowest = first;
    for (int i = first + 1; i < last; ++i) {
      if (x[i] < x[lowest] || (x[i] == x[lowest] && y[i] < y[lowest])) lowest = i;
    }
    const int before = other_vertex(x, y, first, last, lowest, -1);
    const int after = other_vertex(x, y, first, last, lowest, 1);
    const int turn = orientation(x[before], y[before], x[lowest], y[lowest], x[after], y[after]);
    reversed[ring] = turn != 0 && (turn > 0) != is_valid(shells, (int)ring) ? 1 : 0;
  }
}

// A key is the edge above the hash of its group and its ends, regardless of their order.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void edge_keys(uint vertices, uint bits, int rows, __global const int* rings, uint ring_count, __global const int* offsets,
               __global const uchar* reversed, __global const uint* ranks, __global const double* x,
               __global const double* y, __global uint* sides, __global ulong* keys) {
  const size_t end = end_of_items(vertices);
  for (size_t i = first_item(vertices); i < end; i += ROWS) {
    const int ring = row_of(offsets, (int)ring_count, (int)i);
    uint hash = no_edge(bits);
    if ((int)i + 1 < offsets[ring + 1] && !same_vertex(x, y, (uint)i, (uint)i + 1)) {
      const uint group = ranks[row_of(rings, rows, ring)];
      const bool swap = x[i + 1] < x[i] || (x[i + 1] == x[i] && y[i + 1] < y[i]);
      const size_t a = swap ? i + 1 : i;
      const size_t b = swap ? i : i + 1;
      sides[i] = (group << 1) | reversed[ring];
      hash = hash_of(mixed_vertex(mixed_vertex(group, x[a], y[a]), x[b], y[b]), bits);
    }
    keys[i] = ((ulong)i << 32) | hash;
  }
}

// Returns 0 if two edges of one hash differ, 1 if they are equal, -1 if one is the other reversed.
int compare_edges(__global const double* x, __global const double* y, __global const uint* sides, uint a, uint b) {
  if ((sides[a] ^ sides[b]) >> 1 != 0) return 0;
  const uint from = start_of(a, sides[a]);
  const uint to = end_of(a, sides[a]);
  const uint other_from = start_of(b, sides[b]);
  const uint other_to = end_of(b, sides[b]);
  if (same_vertex(x, y, from, other_from) && same_vertex(x, y, to, other_to)) return 1;
  return same_vertex(x, y, from, other_to) && same_vertex(x, y, to, other_from) ? -1 : 0;
}

// Flags the edges that occur once. It is an error if one occurs twice in one direction, or more often, or has a
// coordinate that is NaN.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void edge_cancel(uint count, uint bits, __global const ulong* keys, __global const uint* sides, __global const double* x,
                 __global const double* y, __global uchar* flags, __global uint* status) {
  const size_t end = end_of_items(count);
  for (size_t i = first_item(count); i < end; i += ROWS) {
    const uint edge = (uint)(keys[i] >> 32);
    const uint hash = (uint)keys[i];
    int equal = 0;
    int opposite = 0;
    if (hash != no_edge(bits)) {
      equal = compare_edges(x, y, sides, edge, edge);  // 0 if a coordinate is NaN
      // Ends at the first error: the run of one hash can be as long as the input.
      for (int step = -1; step <= 1; step += 2) {
        for (size_t k = i + (size_t)step; k < count && (uint)keys[k] == hash && equal == 1 && opposite < 2;
             k += (size_t)step) {
          const int compared = compare_edges(x, y, sides, edge, (uint)(keys[k] >> 32));
          equal += compared == 1 ? 1 : 0;
          opposite += compared == -1 ? 1 : 0;
        }
      }
      if (equal != 1 || opposite > 1) *status = 1;
    }
    flags[edge] = equal == 1 && opposite == 0 ? 1 : 0;
  }
}

// Replaces a count by UINT_MAX, which no caller accepts as a size, if a kernel found an error.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void dissolve_check(__global const uint* status, __global uint* count) {
  if (get_global_id(0) == 0 && *status != 0) *count = UINT_MAX;
}
