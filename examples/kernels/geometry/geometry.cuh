// Columns of geometries as all kernels of this directory read them: coordinates in two arrays of doubles, offsets that
// assign coordinates to rows, and a bitmap of the rows that are not null.
//
// Null is not empty. A null row has no geometry: it is unknown, and every result computed from it is null. An empty row
// has a geometry that is known to have no coordinates: its area is 0, its box contains nothing, and it intersects
// nothing. Kernels document any exception.
#pragma once

struct Point {
  double x;
  double y;
};

struct Segment {
  Point a;
  Point b;
};

struct Box {
  double min_x;
  double min_y;
  double max_x;
  double max_y;
};

enum class State : unsigned char { Null = 0, Empty = 1, Present = 2 };

__device__ inline double infinity() { return __longlong_as_double(0x7ff0000000000000LL); }
__device__ inline double not_a_number() { return __longlong_as_double(0x7ff8000000000000LL); }
__device__ inline bool is_number(double value) { return value == value; }
__device__ inline bool is_finite(double value) { return fabs(value) < infinity(); }

__device__ inline double smaller(double a, double b) { return a < b ? a : b; }
__device__ inline double larger(double a, double b) { return a > b ? a : b; }
__device__ inline int smaller(int a, int b) { return a < b ? a : b; }
__device__ inline int larger(int a, int b) { return a > b ? a : b; }
__device__ inline double clamped(double value, double low, double high) {
  return value < low ? low : value > high ? high : value;
}

__device__ inline bool same(Point a, Point b) { return a.x == b.x && a.y == b.y; }
__device__ inline Point minus(Point a, Point b) { return {a.x - b.x, a.y - b.y}; }
__device__ inline double dot(Point a, Point b) { return a.x * b.x + a.y * b.y; }
__device__ inline double cross(Point a, Point b) { return a.x * b.y - a.y * b.x; }
__device__ inline double squared_distance(Point a, Point b) {
  const Point d = minus(a, b);
  return dot(d, d);
}
// hypot, because coordinates can be so large that their squares overflow.
__device__ inline double distance(Point a, Point b) { return hypot(a.x - b.x, a.y - b.y); }
__device__ inline Point between(Point a, Point b, double share) {
  // Returns exactly b at the end, which a + share * (b - a) does not.
  if (share >= 1) return b;
  return {fma(share, b.x - a.x, a.x), fma(share, b.y - a.y, a.y)};
}

// The empty box: joined with any other box it yields that box, and it overlaps none.
__device__ inline Box empty_box() { return {infinity(), infinity(), -infinity(), -infinity()}; }
__device__ inline Box null_box() { return {not_a_number(), not_a_number(), not_a_number(), not_a_number()}; }
__device__ inline Box joined(Box a, Box b) {
  return {smaller(a.min_x, b.min_x), smaller(a.min_y, b.min_y), larger(a.max_x, b.max_x), larger(a.max_y, b.max_y)};
}
__device__ inline Box joined(Box box, Point p) { return joined(box, Box{p.x, p.y, p.x, p.y}); }
__device__ inline Box box_of(Segment s) {
  return {smaller(s.a.x, s.b.x), smaller(s.a.y, s.b.y), larger(s.a.x, s.b.x), larger(s.a.y, s.b.y)};
}
// Boxes are closed: boxes that share an edge overlap. A null box compares false with everything.
__device__ inline bool overlap(Box a, Box b) {
  return a.min_x <= b.max_x && b.min_x <= a.max_x && a.min_y <= b.max_y && b.min_y <= a.max_y;
}
__device__ inline bool contains(Box box, Point p) {
  return box.min_x <= p.x && p.x <= box.max_x && box.min_y <= p.y && p.y <= box.max_y;
}
// Returns a lower bound of the squared distance between any two points of the boxes.
__device__ inline double squared_distance(Box a, Box b) {
  const double x = larger(0.0, larger(a.min_x - b.max_x, b.min_x - a.max_x));
  const double y = larger(0.0, larger(a.min_y - b.max_y, b.min_y - a.max_y));
  return x * x + y * y;
}

// A validity bitmap: bit i % 32 of word i / 32 is row i. A null pointer means that every row is valid.
struct Validity {
  const unsigned* words;
  __device__ bool operator[](int row) const { return words == nullptr || ((words[row >> 5] >> (row & 31)) & 1u) != 0; }
};

struct Coordinates {
  const double* x;
  const double* y;
  __device__ Point operator[](int i) const { return {x[i], y[i]}; }
  __device__ Segment segment(int i) const { return {{x[i], y[i]}, {x[i + 1], y[i + 1]}}; }
};

// Indices of coordinates or other items, from `first` up to but not including `last`.
struct Range {
  int first;
  int last;
  __device__ int size() const { return last - first; }
  __device__ bool empty() const { return last <= first; }
};

// One point per row. An empty point has NaN for both coordinates, as in WKB.
struct Points {
  int rows;
  Validity valid;
  Coordinates at;
  __device__ Range coordinates(int row) const { return {row, row + (is_number(at.x[row]) ? 1 : 0)}; }
  __device__ State state(int row) const {
    if (!valid[row]) return State::Null;
    return is_number(at.x[row]) && is_number(at.y[row]) ? State::Present : State::Empty;
  }
};

// One line or multipoint per row: row r has the coordinates offsets[r] … offsets[r + 1].
struct Lines {
  int rows;
  Validity valid;
  const int* offsets;
  Coordinates at;
  __device__ Range coordinates(int row) const { return {offsets[row], offsets[row + 1]}; }
  __device__ State state(int row) const {
    if (!valid[row]) return State::Null;
    return coordinates(row).empty() ? State::Empty : State::Present;
  }
};

// One polygon per row: rings[r] … rings[r + 1] are its rings. The first ring is the shell, the others are holes. The
// last coordinate of a ring repeats its first.
struct Polygons {
  int rows;
  Validity valid;
  const int* rings;
  const int* offsets;  // offsets of the rings
  Coordinates at;
  __device__ Range rings_of(int row) const { return {rings[row], rings[row + 1]}; }
  __device__ Range ring(int number) const { return {offsets[number], offsets[number + 1]}; }
  __device__ Range coordinates(int row) const { return {offsets[rings[row]], offsets[rings[row + 1]]}; }
  __device__ State state(int row) const {
    if (!valid[row]) return State::Null;
    return coordinates(row).empty() ? State::Empty : State::Present;
  }
};

// Several polygons per row, in the same layout.
struct MultiPolygons {
  int rows;
  Validity valid;
  const int* parts;
  const int* rings;    // first ring of each part
  const int* offsets;  // offsets of the rings
  Coordinates at;
  __device__ Range parts_of(int row) const { return {parts[row], parts[row + 1]}; }
  __device__ Range rings_of_part(int part) const { return {rings[part], rings[part + 1]}; }
  __device__ Range rings_of(int row) const { return {rings[parts[row]], rings[parts[row + 1]]}; }
  __device__ Range ring(int number) const { return {offsets[number], offsets[number + 1]}; }
  __device__ Range coordinates(int row) const {
    const Range all = rings_of(row);
    return {offsets[all.first], offsets[all.last]};
  }
  __device__ State state(int row) const {
    if (!valid[row]) return State::Null;
    return coordinates(row).empty() ? State::Empty : State::Present;
  }
};

// Candidate pairs from an index: left[i] and right[i] are the rows of pair i in the left and the right column.
struct Pairs {
  int count;
  const int* left;
  const int* right;
};
