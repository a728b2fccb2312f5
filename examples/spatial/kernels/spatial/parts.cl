// Polygons from linked edges: rings in the order of their groups, each hole after its shell.

// A key is the least edge of a ring above its group.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void ring_keys(uint rings, __global const uint* leaders, __global const uint* edges, __global const uint* sides,
               __global ulong* keys) {
  const size_t end = end_of_items(rings);
  for (size_t i = first_item(rings); i < end; i += ROWS) {
    keys[i] = ((ulong)leaders[i] << 32) | (sides[edges[leaders[i]]] >> 1);
  }
}

__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void ring_lengths(uint rings, uint count, __global const ulong* keys, __global const uint* next,
                  __global const uint* state, __global uint* ring_of, __global uint* lengths) {
  const size_t end = end_of_items(rings);
  for (size_t ring = first_item(rings); ring < end; ring += ROWS) {
    const uint leader = (uint)(keys[ring] >> 32);
    ring_of[leader] = (uint)ring;
    lengths[ring] = state[2 * (size_t)count + next[leader]] + 1;
  }
}

// Writes the first vertex of each edge in the order of its ring.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void place_edges(uint count, __global const uint* edges, __global const uint* sides, __global const double* x,
                 __global const double* y, __global const uint* state, __global const uint* ring_of,
                 __global const uint* starts, __global double* ring_x, __global double* ring_y) {
  const size_t end = end_of_items(count);
  for (size_t i = first_item(count); i < end; i += ROWS) {
    const uint ring = ring_of[state[(size_t)count + i]];
    const uint ahead = state[2 * (size_t)count + i];
    const uint place = ahead == 0 ? starts[ring] : starts[ring + 1] - ahead;
    const uint vertex = start_of(edges[i], sides[edges[i]]);
    ring_x[place] = x[vertex];
    ring_y[place] = y[vertex];
  }
}

// The y of leftmost vertices; infinity for others.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void leftmost_heights(uint count, uint rings, __global const int* starts, __global const double* ring_x,
                      __global const double* ring_y, __global const double* min_x, __global double* heights) {
  const size_t end = end_of_items(count);
  for (size_t i = first_item(count); i < end; i += ROWS) {
    heights[i] = ring_x[i] == min_x[row_of(starts, (int)rings, (int)i)] ? ring_y[i] : INFINITY;
  }
}

// A ring that turns left at its lowest leftmost vertex is a shell. A ring is at each vertex once.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void ring_turns(uint count, uint rings, __global const int* starts, __global const double* ring_x,
                __global const double* ring_y, __global const double* min_x, __global const double* lowest,
                __global uchar* shells) {
  const size_t end = end_of_items(count);
  for (size_t i = first_item(count); i < end; i += ROWS) {
    const int ring = row_of(starts, (int)rings, (int)i);
    if (ring_x[i] != min_x[ring] || ring_y[i] != lowest[ring]) continue;
    const int before = (int)i == starts[ring] ? starts[ring + 1] - 1 : (int)i - 1;
    const int after = (int)i + 1 == starts[ring + 1] ? starts[ring] : (int)i + 1;
    const int turn = orientation(ring_x[before], ring_y[before], ring_x[i], ring_y[i], ring_x[after], ring_y[after]);
    shells[ring] = turn > 0 ? 1 : 0;
  }
}

// Returns 1 if the point is inside the ring, -1 if it is outside, 0 if it is on it.
int side_of_ring(__global const double* x, __global const double* y, int first, int last, double px, double py) {
  int crossed = 0;
  for (int i = first; i < last; ++i) {
    const int next = i + 1 == last ? first : i + 1;
    const int met = meet_edge(px, py, x[i], y[i], x[next], y[next]);
    if (met == TOUCHED) return 0;
    crossed ^= met;
  }
  return crossed != 0 ? 1 : -1;
}

// Returns whether a hole is in a shell: the first of its vertices that is not on the shell decides. A hole has at most
// one vertex on its own shell.
bool is_hole_of(__global const double* x, __global const double* y, __global const int* starts, int hole, int shell) {
  for (int i = starts[hole]; i < starts[hole + 1]; ++i) {
    const int side = side_of_ring(x, y, starts[shell], starts[shell + 1], x[i], y[i]);
    if (side != 0) return side > 0;
  }
  return false;
}

bool box_covers(__global const double* min_x, __global const double* min_y, __global const double* max_x,
                __global const double* max_y, int a, int b) {
  return min_x[a] <= min_x[b] && min_y[a] <= min_y[b] && max_x[a] >= max_x[b] && max_y[a] >= max_y[b];
}

// Finds the innermost shell around each hole, among the rings of its group. A key is the ring above its shell and
// whether it is a hole, so that sorted holes follow their shell.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void ring_shells(uint rings, __global const ulong* groups, __global const int* starts, __global const double* ring_x,
                 __global const double* ring_y, __global const double* min_x, __global const double* min_y,
                 __global const double* max_x, __global const double* max_y, __global const uchar* shells,
                 __global ulong* keys) {
  const size_t end = end_of_items(rings);
  for (size_t ring = first_item(rings); ring < end; ring += ROWS) {
    const int me = (int)ring;
    int shell = me;
    if (shells[ring] == 0) {
      int other = me;
      while (other > 0 && (uint)groups[other - 1] == (uint)groups[ring]) --other;
      for (; other < (int)rings && (uint)groups[other] == (uint)groups[ring]; ++other) {
        if (shells[other] == 0 || !box_covers(min_x, min_y, max_x, max_y, other, me)) continue;
        if (shell != me && !box_covers(min_x, min_y, max_x, max_y, shell, other)) continue;
        if (is_hole_of(ring_x, ring_y, starts, me, other)) shell = other;
      }
    }
    keys[ring] = ((ulong)ring << 32) | ((uint)shell << 1) | (shell != me ? 1u : 0u);
  }
}

// The number of vertices of each ring in the order of the result, with the closing vertex.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void ring_sizes(uint rings, __global const ulong* keys, __global const int* starts, __global uint* places,
                __global uint* sizes) {
  const size_t end = end_of_items(rings);
  for (size_t i = first_item(rings); i < end; i += ROWS) {
    const uint ring = (uint)(keys[i] >> 32);
    places[ring] = (uint)i;
    sizes[i] = (uint)(starts[ring + 1] - starts[ring]) + 1;
  }
}

// One work item writes one word of the bitmap.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void shell_bits(uint rings, __global const ulong* keys, __global uint* shells) {
  const size_t words = ((size_t)rings + 31) / 32;
  const size_t end = end_of_items(words);
  for (size_t word = first_item(words); word < end; word += ROWS) {
    const uint first = (uint)word * 32;
    const uint last = first + min(rings - first, 32u);
    uint bits = 0;
    for (uint i = first; i < last; ++i) bits |= (keys[i] & 1) == 0 ? 1u << (i - first) : 0;
    shells[word] = bits;
  }
}

// Finds the first ring of each group, and the number of rings behind the last.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void group_rings(uint groups, uint rings, __global const ulong* keys, __global int* first_rings) {
  const size_t count = (size_t)groups + 1;
  const size_t end = end_of_items(count);
  for (size_t group = first_item(count); group < end; group += ROWS) {
    uint low = 0;
    uint high = rings;
    while (low < high) {
      const uint middle = low + (high - low) / 2;
      if ((uint)keys[middle] < group) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    first_rings[group] = (int)low;
  }
}

__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void write_rings(uint count, uint rings, __global const int* starts, __global const uint* places,
                 __global const uint* offsets, __global const double* ring_x, __global const double* ring_y,
                 __global double* x, __global double* y) {
  const size_t end = end_of_items(count);
  for (size_t i = first_item(count); i < end; i += ROWS) {
    const int ring = row_of(starts, (int)rings, (int)i);
    const uint place = places[ring];
    const uint within = (uint)((int)i - starts[ring]);
    x[offsets[place] + within] = ring_x[i];
    y[offsets[place] + within] = ring_y[i];
    if (within != 0) continue;
    x[offsets[place + 1] - 1] = ring_x[i];
    y[offsets[place + 1] - 1] = ring_y[i];
  }
}
