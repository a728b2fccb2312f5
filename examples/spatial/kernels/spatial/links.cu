// Links boundary edges to rings, by the vertex at which one ends and the next begins, with the polygon on the left.
//
// Where several edges begin at a vertex, the first link goes to the edge that bounds the same wedge of the polygon, so
// that each ring of links bounds one connected part, but may touch itself. The second link, among the edges of the same
// ring, goes to the edge that bounds the same wedge outside, which separates a shell from the holes that touch it.
// Both pair each edge that ends with one that begins.
#include "dissolve.cuh"

extern "C" __global__ void boundary_keys(unsigned count, unsigned bits, const unsigned* edges, const unsigned* sides,
                                         const double* x, const double* y, Wide* keys) {
  for (size_t i = first_item(); i < count; i += item_step()) {
    const unsigned side = sides[edges[i]];
    const unsigned vertex = start_of(edges[i], side);
    keys[i] = (Wide(i) << 32) | hash_of(mixed_vertex(side >> 1, x[vertex], y[vertex]), bits);
  }
}

// Returns the position of the first key whose lowest 32 bits are not less than the hash.
__device__ inline unsigned first_of_hash(const Wide* keys, unsigned count, unsigned hash) {
  unsigned low = 0;
  unsigned high = count;
  while (low < high) {
    const unsigned middle = low + (high - low) / 2;
    if (unsigned(keys[middle]) < hash) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Returns where the direction from v to c is, counterclockwise from that from v to u: 0 less than half a turn, 1 half a
// turn, 2 more, 3 the same direction.
__device__ inline int turn_class(double vx, double vy, double ux, double uy, double cx, double cy) {
  const int turn = orientation(vx, vy, ux, uy, cx, cy);
  if (turn != 0) return turn > 0 ? 0 : 2;
  return (cx > vx) == (ux > vx) && (cx < vx) == (ux < vx) && (cy > vy) == (uy > vy) && (cy < vy) == (uy < vy) ? 3 : 1;
}

// Returns whether c comes before d, counterclockwise from u around v.
__device__ inline bool comes_before(double vx, double vy, double ux, double uy, double cx, double cy, double dx,
                                    double dy) {
  const int of_c = turn_class(vx, vy, ux, uy, cx, cy);
  const int of_d = turn_class(vx, vy, ux, uy, dx, dy);
  if (of_c != of_d) return of_c < of_d;
  return orientation(vx, vy, cx, cy, dx, dy) > 0;
}

// `labels` has the ring of the first link of each edge; the first link itself does not read it.
extern "C" __global__ void link_edges(unsigned count, unsigned bits, int second, const unsigned* edges,
                                      const unsigned* sides, const double* x, const double* y, const Wide* keys,
                                      const unsigned* labels, unsigned* next, unsigned* status) {
  for (size_t i = first_item(); i < count; i += item_step()) {
    const unsigned side = sides[edges[i]];
    const unsigned u = start_of(edges[i], side);
    const unsigned v = end_of(edges[i], side);
    const unsigned hash = hash_of(mixed_vertex(side >> 1, x[v], y[v]), bits);
    unsigned best = kMost;
    unsigned best_end = 0;
    for (unsigned k = first_of_hash(keys, count, hash); k < count && unsigned(keys[k]) == hash; ++k) {
      const unsigned other = unsigned(keys[k] >> 32);
      const unsigned other_side = sides[edges[other]];
      if ((other_side ^ side) >> 1 != 0 || !same_vertex(x, y, v, start_of(edges[other], other_side))) continue;
      if (second != 0 && labels[other] != labels[i]) continue;
      const unsigned c = end_of(edges[other], other_side);
      const bool before = best != kMost && comes_before(x[v], y[v], x[u], y[u], x[c], y[c], x[best_end], y[best_end]);
      if (best == kMost || before == (second != 0)) {
        best = other;
        best_end = c;
      }
    }
    if (best == kMost) *status = 1;
    next[i] = best == kMost ? unsigned(i) : best;
  }
}

// The state of an edge is in three arrays: the edge 4^k links ahead, the least of the edges before that one, and how
// many links ahead that is.
extern "C" __global__ void jump_begin(unsigned count, const unsigned* next, unsigned* back, unsigned* state) {
  for (size_t i = first_item(); i < count; i += item_step()) {
    back[next[i]] = unsigned(i);
    state[i] = next[i];
    state[size_t(count) + i] = unsigned(i);
    state[2 * size_t(count) + i] = 0;
  }
}

// Quadruples the number of links that each edge looks ahead, which is `span` before.
extern "C" __global__ void jump_ahead(unsigned count, unsigned span, const unsigned* state, unsigned* further) {
  const unsigned* const least = state + count;
  const unsigned* const distance = state + 2 * size_t(count);
  for (size_t i = first_item(); i < count; i += item_step()) {
    unsigned ahead = state[i];
    unsigned best = least[i];
    unsigned links = distance[i];
    for (unsigned k = 1; k < 4; ++k) {
      if (least[ahead] < best) {
        best = least[ahead];
        links = distance[ahead] + k * span;
      }
      ahead = state[ahead];
    }
    further[i] = ahead;
    further[size_t(count) + i] = best;
    further[2 * size_t(count) + i] = links;
  }
}

// Copies the least edge of each ring, and flags it. It is an error if two edges link to one.
extern "C" __global__ void ring_labels(unsigned count, const unsigned* next, const unsigned* back,
                                       const unsigned* state, unsigned* labels, unsigned char* flags,
                                       unsigned* status) {
  for (size_t i = first_item(); i < count; i += item_step()) {
    const unsigned label = state[size_t(count) + i];
    labels[i] = label;
    flags[i] = label == unsigned(i) ? 1 : 0;
    if (back[next[i]] != unsigned(i)) *status = 1;
  }
}
