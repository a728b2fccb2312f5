// Computes the side of a line that a point is on, exactly. A determinant in doubles is nearly always sufficient, and an
// error bound detects when it is not. In that case the exact products are summed as an expansion: non-overlapping
// doubles whose sum is exactly the value (Shewchuk, Adaptive Precision Floating-Point Arithmetic, 1997). Exact unless a
// product underflows.
//
// The operations use rounding intrinsics, because the compiler may otherwise fuse a product and a sum, which would make
// the error terms wrong.
#pragma once

#include "geometry.cuh"

struct Exact2 {
  double head;  // the rounded value
  double tail;  // the rounding error
};

__device__ inline Exact2 exact_sum(double a, double b) {
  const double sum = __dadd_rn(a, b);
  const double b_seen = __dsub_rn(sum, a);
  const double a_seen = __dsub_rn(sum, b_seen);
  return {sum, __dadd_rn(__dsub_rn(a, a_seen), __dsub_rn(b, b_seen))};
}

// Requires that |a| is at least |b|.
__device__ inline Exact2 exact_sum_ordered(double a, double b) {
  const double sum = __dadd_rn(a, b);
  return {sum, __dsub_rn(b, __dsub_rn(sum, a))};
}

__device__ inline Exact2 exact_product(double a, double b) {
  const double product = __dmul_rn(a, b);
  return {product, __fma_rn(a, b, -product)};
}

// An exact sum of doubles: non-overlapping components by increasing magnitude, possibly with zeros.
template <int Most>
struct Expansion {
  double components[Most];
  int size = 0;

  __device__ void add(double value) {
    for (int i = 0; i < size; ++i) {
      const Exact2 sum = exact_sum(value, components[i]);
      components[i] = sum.tail;
      value = sum.head;
    }
    components[size++] = value;
  }
  __device__ void add(Exact2 value) {
    add(value.tail);
    add(value.head);
  }
  __device__ int sign() const {
    for (int i = size - 1; i >= 0; --i) {
      if (components[i] != 0) return components[i] > 0 ? 1 : -1;
    }
    return 0;
  }
};

__device__ inline int sign_of(double value) { return value > 0 ? 1 : value < 0 ? -1 : 0; }

// Computes the determinant from its six products, without any difference. It is rarely needed and therefore not
// inlined, because it would make up most of the code of every caller.
__device__ __noinline__ inline int orientation_exactly(Point a, Point b, Point c) {
  Expansion<12> sum;
  sum.add(exact_product(a.x, b.y));
  sum.add(exact_product(-a.x, c.y));
  sum.add(exact_product(-c.x, b.y));
  sum.add(exact_product(-a.y, b.x));
  sum.add(exact_product(a.y, c.x));
  sum.add(exact_product(c.y, b.x));
  return sum.sign();
}

// Returns 1 if a, b, c turn left, -1 if they turn right, and 0 if they are collinear.
__device__ inline int orientation(Point a, Point b, Point c) {
  const double left = __dmul_rn(__dsub_rn(a.x, c.x), __dsub_rn(b.y, c.y));
  const double right = __dmul_rn(__dsub_rn(a.y, c.y), __dsub_rn(b.x, c.x));
  const double determinant = __dsub_rn(left, right);
  const double magnitude = __dadd_rn(fabs(left), fabs(right));
  constexpr double kBound = 3.3306690738754716e-16;  // (3 + 16 e) e, where e is 2^-53
  if (fabs(determinant) >= kBound * magnitude && magnitude > 0) return sign_of(determinant);
  return orientation_exactly(a, b, c);
}

// A double and its error term: about 106 bits, for values whose sign need not be exact.
struct DoubleDouble {
  double high;
  double low;
};

__device__ inline DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  const Exact2 high = exact_sum(a.high, b.high);
  const Exact2 low = exact_sum(a.low, b.low);
  const Exact2 first = exact_sum_ordered(high.head, __dadd_rn(high.tail, low.head));
  const Exact2 all = exact_sum_ordered(first.head, __dadd_rn(first.tail, low.tail));
  return {all.head, all.tail};
}

__device__ inline DoubleDouble operator-(DoubleDouble a) { return {-a.high, -a.low}; }
__device__ inline DoubleDouble operator-(DoubleDouble a, DoubleDouble b) { return a + -b; }

__device__ inline DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
  const Exact2 product = exact_product(a.high, b.high);
  const double rest = __fma_rn(a.high, b.low, __fma_rn(a.low, b.high, product.tail));
  const Exact2 all = exact_sum_ordered(product.head, rest);
  return {all.head, all.tail};
}

__device__ inline DoubleDouble difference(double a, double b) {
  const Exact2 exact = exact_sum(a, -b);
  return {exact.head, exact.tail};
}

__device__ inline DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
  const double first = a.high / b.high;
  const DoubleDouble rest = a - b * DoubleDouble{first, 0};
  const double second = rest.high / b.high;
  const DoubleDouble last = rest - b * DoubleDouble{second, 0};
  const Exact2 quotient = exact_sum_ordered(first, second);
  const DoubleDouble all = DoubleDouble{quotient.head, quotient.tail} + DoubleDouble{last.high / b.high, 0};
  return all;
}
