// Polygons from linked edges: rings in the order of their groups, each hole after its shell.
#include "dissolve.cuh"

// A key is the least edge of a ring above its group.
extern "C" __global__ void ring_keys(unsigned rings, const unsigned* leaders, const unsigned* edges,
                                     const unsigned* sides, Wide* keys) {
  for (size_t i = first_item(); i < rings; i += item_step()) {
    keys[i] = (Wide(leaders[i]) << 32) | (sides[edges[leaders[i]]] >> 1);
  }
}

extern "C" __global__ void ring_lengths(unsigned rings, unsigned count, const Wide* keys, const unsigned* next,
                                        const unsigned* state, unsigned* ring_of, unsigned* lengths) {
  for (size_t ring = first_item(); ring < rings; ring += item_step()) {
    const unsigned leader = unsigned(keys[ring] >> 32);
    ring_of[leader] = unsigned(ring);
    lengths[ring] = state[2 * size_t(count) + next[leader]] + 1;
  }
}

// Writes the first vertex of each edge in the order of its ring.
extern "C" __global__ void place_edges(unsigned count, const unsigned* edges, const unsigned* sides, const double* x,
                                       const double* y, const unsigned* state, const unsigned* ring_of,
                                       const unsigned* starts, double* ring_x, double* ring_y) {
  for (size_t i = first_item(); i < count; i += item_step()) {
    const unsigned ring = ring_of[state[size_t(count) + i]];
    const unsigned ahead = state[2 * size_t(count) + i];
    const unsigned place = ahead == 0 ? starts[ring] : starts[ring + 1] - ahead;
    const unsigned vertex = start_of(edges[i], sides[edges[i]]);
    ring_x[place] = x[vertex];
    ring_y[place] = y[vertex];
  }
}

// The y of leftmost vertices; infinity for others.
extern "C" __global__ void leftmost_heights(unsigned count, unsigned rings, const int* starts, const double* ring_x,
                                            const double* ring_y, const double* min_x, double* heights) {
  for (size_t i = first_item(); i < count; i += item_step()) {
    heights[i] = ring_x[i] == min_x[row_of(starts, int(rings), int(i))] ? ring_y[i] : infinity();
  }
}

// A ring that turns left at its lowest leftmost vertex is a shell. A ring is at each vertex once.
extern "C" __global__ void ring_turns(unsigned count, unsigned rings, const int* starts, const double* ring_x,
                                      const double* ring_y, const double* min_x, const double* lowest,
                                      unsigned char* shells) {
  for (size_t i = first_item(); i < count; i += item_step()) {
    const int ring = row_of(starts, int(rings), int(i));
    if (ring_x[i] != min_x[ring] || ring_y[i] != lowest[ring]) continue;
    const int before = int(i) == starts[ring] ? starts[ring + 1] - 1 : int(i) - 1;
    const int after = int(i) + 1 == starts[ring + 1] ? starts[ring] : int(i) + 1;
    const int turn = orientation(ring_x[before], ring_y[before], ring_x[i], ring_y[i], ring_x[after], ring_y[after]);
    shells[ring] = turn > 0 ? 1 : 0;
  }
}

enum class Met : signed char { Passed, Crossed, Touched };

// The relation of an edge to a ray from a point to the right. An edge includes its lower end but not its upper end, so
// that a ray through a vertex counts once.
__device__ inline Met meet_edge(Point p, Segment edge) {
  if ((edge.a.y > p.y) == (edge.b.y > p.y)) {
    const bool level = edge.a.y == p.y && edge.b.y == p.y && within_box(edge, p);
    return level || same(edge.b, p) ? Met::Touched : Met::Passed;
  }
  const int turn = orientation(edge.a, edge.b, p);
  if (turn == 0) return Met::Touched;
  return (turn > 0) == (edge.b.y > edge.a.y) ? Met::Crossed : Met::Passed;
}

// Returns 1 if the point is inside the ring, -1 if it is outside, 0 if it is on it.
__device__ inline int side_of_ring(const double* x, const double* y, int first, int last, double px, double py) {
  bool crossed = false;
  for (int i = first; i < last; ++i) {
    const int next = i + 1 == last ? first : i + 1;
    const Met met = meet_edge({px, py}, {{x[i], y[i]}, {x[next], y[next]}});
    if (met == Met::Touched) return 0;
    if (met == Met::Crossed) crossed = !crossed;
  }
  return crossed ? 1 : -1;
}

// Returns whether a hole is in a shell: the first of its vertices that is not on the shell decides. A hole has at most
// one vertex on its own shell.
__device__ inline bool is_hole_of(const double* x, const double* y, const int* starts, int hole, int shell) {
  for (int i = starts[hole]; i < starts[hole + 1]; ++i) {
    const int side = side_of_ring(x, y, starts[shell], starts[shell + 1], x[i], y[i]);
    if (side != 0) return side > 0;
  }
  return false;
}

__device__ inline bool box_covers(const double* min_x, const double* min_y, const double* max_x, const double* max_y,
                                  int a, int b) {
  return min_x[a] <= min_x[b] && min_y[a] <= min_y[b] && max_x[a] >= max_x[b] && max_y[a] >= max_y[b];
}

// Finds the innermost shell around each hole, among the rings of its group. A key is the ring above its shell and
// whether it is a hole, so that sorted holes follow their shell.
extern "C" __global__ void ring_shells(unsigned rings, const Wide* groups, const int* starts, const double* ring_x,
                                       const double* ring_y, const double* min_x, const double* min_y,
                                       const double* max_x, const double* max_y, const unsigned char* shells,
                                       Wide* keys) {
  for (size_t ring = first_item(); ring < rings; ring += item_step()) {
    const int me = int(ring);
    int shell = me;
    if (shells[ring] == 0) {
      int other = me;
      while (other > 0 && unsigned(groups[other - 1]) == unsigned(groups[ring])) --other;
      for (; other < int(rings) && unsigned(groups[other]) == unsigned(groups[ring]); ++other) {
        if (shells[other] == 0 || !box_covers(min_x, min_y, max_x, max_y, other, me)) continue;
        if (shell != me && !box_covers(min_x, min_y, max_x, max_y, shell, other)) continue;
        if (is_hole_of(ring_x, ring_y, starts, me, other)) shell = other;
      }
    }
    keys[ring] = (Wide(ring) << 32) | (unsigned(shell) << 1) | (shell != me ? 1u : 0u);
  }
}

// The number of vertices of each ring in the order of the result, with the closing vertex.
extern "C" __global__ void ring_sizes(unsigned rings, const Wide* keys, const int* starts, unsigned* places,
                                      unsigned* sizes) {
  for (size_t i = first_item(); i < rings; i += item_step()) {
    const unsigned ring = unsigned(keys[i] >> 32);
    places[ring] = unsigned(i);
    sizes[i] = unsigned(starts[ring + 1] - starts[ring]) + 1;
  }
}

// One work item writes one word of the bitmap.
extern "C" __global__ void shell_bits(unsigned rings, const Wide* keys, unsigned* shells) {
  const size_t words = (size_t(rings) + 31) / 32;
  for (size_t word = first_item(); word < words; word += item_step()) {
    const unsigned first = unsigned(word) * 32;
    const unsigned last = first + smaller(rings - first, 32u);
    unsigned bits = 0;
    for (unsigned i = first; i < last; ++i) bits |= (keys[i] & 1) == 0 ? 1u << (i - first) : 0;
    shells[word] = bits;
  }
}

// Finds the first ring of each group, and the number of rings behind the last.
extern "C" __global__ void group_rings(unsigned groups, unsigned rings, const Wide* keys, int* first_rings) {
  const size_t count = size_t(groups) + 1;
  for (size_t group = first_item(); group < count; group += item_step()) {
    unsigned low = 0;
    unsigned high = rings;
    while (low < high) {
      const unsigned middle = low + (high - low) / 2;
      if (unsigned(keys[middle]) < group) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    first_rings[group] = int(low);
  }
}

extern "C" __global__ void write_rings(unsigned count, unsigned rings, const int* starts, const unsigned* places,
                                       const unsigned* offsets, const double* ring_x, const double* ring_y, double* x,
                                       double* y) {
  for (size_t i = first_item(); i < count; i += item_step()) {
    const int ring = row_of(starts, int(rings), int(i));
    const unsigned place = places[ring];
    const unsigned within = unsigned(int(i) - starts[ring]);
    x[offsets[place] + within] = ring_x[i];
    y[offsets[place] + within] = ring_y[i];
    if (within != 0) continue;
    x[offsets[place + 1] - 1] = ring_x[i];
    y[offsets[place + 1] - 1] = ring_y[i];
  }
}
