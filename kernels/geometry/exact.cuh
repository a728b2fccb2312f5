// On which side of a line a point lies, without error. A determinant in doubles decides nearly always, and a bound of
// its rounding says when it does not; then the sum of the exact products is taken as an expansion: doubles that do not
// overlap and whose sum is exactly the value (Shewchuk, Adaptive Precision Floating-Point Arithmetic, 1997). Exact
// unless a product underflows.
//
// The roundings are written out with intrinsics, because the compiler may otherwise fuse a product and a sum, and the
// tails would be of something else.
#pragma once

#include "geometry.cuh"

struct Exact2 {
  double head;  // the rounded value
  double tail;  // what the rounding has left
};

__device__ inline Exact2 exact_sum(double a, double b) {
  const double sum = __dadd_rn(a, b);
  const double b_seen = __dsub_rn(sum, a);
  const double a_seen = __dsub_rn(sum, b_seen);
  return {sum, __dadd_rn(__dsub_rn(a, a_seen), __dsub_rn(b, b_seen))};
}

// Where |a| is at least |b|.
__device__ inline Exact2 exact_sum_ordered(double a, double b) {
  const double sum = __dadd_rn(a, b);
  return {sum, __dsub_rn(b, __dsub_rn(sum, a))};
}

__device__ inline Exact2 exact_product(double a, double b) {
  const double product = __dmul_rn(a, b);
  return {product, __fma_rn(a, b, -product)};
}

// A sum of doubles, exactly: components that do not overlap, by growing magnitude, zeros among them.
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

// The determinant by its six products, none of which is of a difference. Hardly ever needed, and so kept out of the way
// of what is: inlined it would be most of the code of whoever asks for a side.
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

// 1 where a, b, c turn to the left, -1 where they turn to the right, 0 where they are on one line.
__device__ inline int orientation(Point a, Point b, Point c) {
  const double left = __dmul_rn(__dsub_rn(a.x, c.x), __dsub_rn(b.y, c.y));
  const double right = __dmul_rn(__dsub_rn(a.y, c.y), __dsub_rn(b.x, c.x));
  const double determinant = __dsub_rn(left, right);
  const double magnitude = __dadd_rn(fabs(left), fabs(right));
  constexpr double kBound = 3.3306690738754716e-16;  // (3 + 16 e) e, where e is 2^-53
  if (fabs(determinant) >= kBound * magnitude && magnitude > 0) return sign_of(determinant);
  return orientation_exactly(a, b, c);
}

// A double and what it lacks: about 106 bits, for what a sign is not asked of.
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
