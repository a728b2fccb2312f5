// Matrix products over semirings, in OpenCL C: the preamble of every kernel of the family. A kernel is this text
// followed by one macro line, such as GEMM(gemm_max_plus_f32, max_plus, f32). semiring.cuh is the same in CUDA C++.
//
// A semiring has a sum and a product. C[i][j] is the sum over k of A[i][k] * B[k][j]: with (max, +) the heaviest path
// from i to j through one k, with (min, +) the shortest, with (max, *) the most probable. Matrices are dense and
// row-major. One work item computes one element, and the global size can be rounded up. The purpose of this family is
// to have many members, not to be the fastest GEMM: the code is as simple as possible.
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double f64;
#endif
typedef float f32;
typedef int i32;
typedef long i64;

#define HIGHEST_f32 INFINITY
#define HIGHEST_f64 INFINITY
#define HIGHEST_i32 INT_MAX
#define HIGHEST_i64 LONG_MAX

// For each semiring: its zero, the product, and the test of whether a sum selects a product. A product with zero is
// zero, for integers as for infinity. The numbers of (max, *) are not negative.
#define ZERO_max_plus(type) (-HIGHEST_##type)
#define ZERO_min_plus(type) HIGHEST_##type
#define ZERO_max_times(type) 0

#define PLUS(a, b, zero) ((a) == (zero) || (b) == (zero) ? (zero) : (a) + (b))
#define PRODUCT_max_plus(type, a, b) PLUS(a, b, ZERO_max_plus(type))
#define PRODUCT_min_plus(type, a, b) PLUS(a, b, ZERO_min_plus(type))
#define PRODUCT_max_times(type, a, b) ((a) * (b))

#define WINS_max_plus(a, best) ((a) > (best))
#define WINS_min_plus(a, best) ((a) < (best))
#define WINS_max_times(a, best) ((a) > (best))

// All kernels have work groups of 16 × 16 items, which the compiler can use.
#define KERNEL __kernel __attribute__((reqd_work_group_size(16, 16, 1))) void

// C = A * B, where A is rows × inner, B is inner × columns and C is rows × columns.
#define GEMM(name, semiring, type)                                                                                     \
  KERNEL name(uint rows, uint columns, uint inner, __global const type* a, __global const type* b, __global type* c) { \
    const size_t column = get_global_id(0);                                                                            \
    const size_t row = get_global_id(1);                                                                               \
    if (row >= rows || column >= columns) return;                                                                      \
    type sum = ZERO_##semiring(type);                                                                                  \
    for (size_t k = 0; k < inner; ++k) {                                                                               \
      const type product = PRODUCT_##semiring(type, a[row * inner + k], b[k * columns + column]);                      \
      if (WINS_##semiring(product, sum)) sum = product;                                                                \
    }                                                                                                                  \
    c[row * columns + column] = sum;                                                                                   \
  }

// Like GEMM, and writes the first k whose product won; -1 if all products are zero.
#define ARGMAX(name, semiring, type)                                                                                 \
  KERNEL name(uint rows, uint columns, uint inner, __global const type* a, __global const type* b, __global type* c, \
              __global int* winner) {                                                                                \
    const size_t column = get_global_id(0);                                                                          \
    const size_t row = get_global_id(1);                                                                             \
    if (row >= rows || column >= columns) return;                                                                    \
    type sum = ZERO_##semiring(type);                                                                                \
    int won = -1;                                                                                                    \
    for (size_t k = 0; k < inner; ++k) {                                                                             \
      const type product = PRODUCT_##semiring(type, a[row * inner + k], b[k * columns + column]);                    \
      if (WINS_##semiring(product, sum)) {                                                                           \
        sum = product;                                                                                               \
        won = (int)k;                                                                                                \
      }                                                                                                              \
    }                                                                                                                \
    c[row * columns + column] = sum;                                                                                 \
    winner[row * columns + column] = won;                                                                            \
  }

// GEMM for batches of matrices that are stored a stride (in elements) apart. A stride of 0 uses one matrix for all.
#define BATCHED(name, semiring, type)                                                                            \
  KERNEL name(uint rows, uint columns, uint inner, uint batches, ulong stride_a, ulong stride_b, ulong stride_c, \
              __global const type* a, __global const type* b, __global type* c) {                                \
    const size_t column = get_global_id(0);                                                                      \
    const size_t row = get_global_id(1);                                                                         \
    const size_t batch = get_global_id(2);                                                                       \
    if (row >= rows || column >= columns || batch >= batches) return;                                            \
    a += batch * stride_a;                                                                                       \
    b += batch * stride_b;                                                                                       \
    type sum = ZERO_##semiring(type);                                                                            \
    for (size_t k = 0; k < inner; ++k) {                                                                         \
      const type product = PRODUCT_##semiring(type, a[row * inner + k], b[k * columns + column]);                \
      if (WINS_##semiring(product, sum)) sum = product;                                                          \
    }                                                                                                            \
    c[batch * stride_c + row * columns + column] = sum;                                                          \
  }

// Backward through (max, +) or (min, +): the gradient of C[i][j] is passed unchanged to the pair that won it.

// dA[i][k] is the sum over j of dC[i][j] where k won. One work item sums each element in a fixed order, so that the
// result is deterministic.
#define BACKWARD_A(name, type)                                                                                  \
  KERNEL name(uint rows, uint columns, uint inner, __global const type* gradient_c, __global const int* winner, \
              __global type* gradient_a) {                                                                      \
    const size_t k = get_global_id(0);                                                                          \
    const size_t row = get_global_id(1);                                                                        \
    if (row >= rows || k >= inner) return;                                                                      \
    type sum = 0;                                                                                               \
    for (size_t column = 0; column < columns; ++column) {                                                       \
      const size_t at = row * columns + column;                                                                 \
      if (winner[at] == (int)k) sum += gradient_c[at];                                                          \
    }                                                                                                           \
    gradient_a[row * inner + k] = sum;                                                                          \
  }

// dB[k][j] is the sum over i of dC[i][j] where k won.
#define BACKWARD_B(name, type)                                                                                  \
  KERNEL name(uint rows, uint columns, uint inner, __global const type* gradient_c, __global const int* winner, \
              __global type* gradient_b) {                                                                      \
    const size_t column = get_global_id(0);                                                                     \
    const size_t k = get_global_id(1);                                                                          \
    if (k >= inner || column >= columns) return;                                                                \
    type sum = 0;                                                                                               \
    for (size_t row = 0; row < rows; ++row) {                                                                   \
      const size_t at = row * columns + column;                                                                 \
      if (winner[at] == (int)k) sum += gradient_c[at];                                                          \
    }                                                                                                           \
    gradient_b[k * columns + column] = sum;                                                                     \
  }
