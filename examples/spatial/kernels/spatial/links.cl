// Links boundary edges to rings, by the vertex at which one ends and the next begins, with the polygon on the left.
//
// Where several edges begin at a vertex, the first link goes to the edge that bounds the same wedge of the polygon, so
// that each ring of links bounds one connected part, but may touch itself. The second link, among the edges of the same
// ring, goes to the edge that bounds the same wedge outside, which separates a shell from the holes that touch it.
// Both pair each edge that ends with one that begins.

__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void boundary_keys(uint count, uint bits, __global const uint* edges, __global const uint* sides, __global const double* x,
                   __global const double* y, __global ulong* keys) {
  const size_t end = end_of_items(count);
  for (size_t i = first_item(count); i < end; i += ROWS) {
    const uint side = sides[edges[i]];
    const uint vertex = start_of(edges[i], side);
    keys[i] = ((ulong)i << 32) | hash_of(mixed_vertex(side >> 1, x[vertex], y[vertex]), bits);
  }
}

// Returns the position of the first key whose lowest 32 bits are not less than the hash.
uint first_of_hash(__global const ulong* keys, uint count, uint hash) {
  uint low = 0;
  uint high = count;
  while (low < high) {
    const uint middle = low + (high - low) / 2;
    if ((uint)keys[middle] < hash) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Returns where the direction from v to c is, counterclockwise from that from v to u: 0 less than half a turn, 1 half a
// turn, 2 more, 3 the same direction.
int turn_class(double vx, double vy, double ux, double uy, double cx, double cy) {
  const int turn = orientation(vx, vy, ux, uy, cx, cy);
  if (turn != 0) return turn > 0 ? 0 : 2;
  return (cx > vx) == (ux > vx) && (cx < vx) == (ux < vx) && (cy > vy) == (uy > vy) && (cy < vy) == (uy < vy) ? 3 : 1;
}

// Returns whether c comes before d, counterclockwise from u around v.
bool comes_before(double vx, double vy, double ux, double uy, double cx, double cy, double dx, double dy) {
  const int of_c = turn_class(vx, vy, ux, uy, cx, cy);
  const int of_d = turn_class(vx, vy, ux, uy, dx, dy);
  if (of_c != of_d) return of_c < of_d;
  return orientation(vx, vy, cx, cy, dx, dy) > 0;
}

// `labels` has the ring of the first link of each edge; the first link itself does not read it.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void link_edges(uint count, uint bits, int second, __global const uint* edges, __global const uint* sides,
                __global const double* x, __global const double* y, __global const ulong* keys,
                __global const uint* labels, __global uint* next, __global uint* status) {
  const size_t end = end_of_items(count);
  for (size_t i = first_item(count); i < end; i += ROWS) {
    const uint side = sides[edges[i]];
    const uint u = start_of(edges[i], side);
    const uint v = end_of(edges[i], side);
    const uint hash = hash_of(mixed_vertex(side >> 1, x[v], y[v]), bits);
    uint best = UINT_MAX;
    uint best_end = 0;
    for (uint k = first_of_hash(keys, count, hash); k < count && (uint)keys[k] == hash; ++k) {
      const uint other = (uint)(keys[k] >> 32);
      const uint other_side = sides[edges[other]];
      if ((other_side ^ side) >> 1 != 0 || !same_vertex(x, y, v, start_of(edges[other], other_side))) continue;
      if (second != 0 && labels[other] != labels[i]) continue;
      const uint c = end_of(edges[other], other_side);
      const bool before = best != UINT_MAX && comes_before(x[v], y[v], x[u], y[u], x[c], y[c], x[best_end], y[best_end]);
      if (best == UINT_MAX || before == (second != 0)) {
        best = other;
        best_end = c;
      }
    }
    if (best == UINT_MAX) *status = 1;
    next[i] = best == UINT_MAX ? (uint)i : best;
  }
}

// The state of an edge is in three arrays: the edge 4^k links ahead, the least of the edges before that one, and how
// many links ahead that is.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void jump_begin(uint count, __global const uint* next, __global uint* back, __global uint* state) {
  const size_t end = end_of_items(count);
  for (size_t i = first_item(count); i < end; i += ROWS) {
    back[next[i]] = (uint)i;
    state[i] = next[i];
    state[(size_t)count + i] = (uint)i;
    state[2 * (size_t)count + i] = 0;
  }
}

// Quadruples the number of links that each edge looks ahead, which is `span` before.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void jump_ahead(uint count, uint span, __global const uint* state, __global uint* further) {
  __global const uint* const least = state + count;
  __global const uint* const distance = state + 2 * (size_t)count;
  const size_t end = end_of_items(count);
  for (size_t i = first_item(count); i < end; i += ROWS) {
    uint ahead = state[i];
    uint best = least[i];
    uint links = distance[i];
    for (uint k = 1; k < 4; ++k) {
      if (least[ahead] < best) {
        best = least[ahead];
        links = distance[ahead] + k * span;
      }
      ahead = state[ahead];
    }
    further[i] = ahead;
    further[(size_t)count + i] = best;
    further[2 * (size_t)count + i] = links;
  }
}

// Copies the least edge of each ring, and flags it. It is an error if two edges link to one.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void ring_labels(uint count, __global const uint* next, __global const uint* back, __global const uint* state,
                 __global uint* labels, __global uchar* flags, __global uint* status) {
  const size_t end = end_of_items(count);
  for (size_t i = first_item(count); i < end; i += ROWS) {
    const uint label = state[(size_t)count + i];
    labels[i] = label;
    flags[i] = label == (uint)i ? 1 : 0;
    if (back[next[i]] != (uint)i) *status = 1;
  }
}
