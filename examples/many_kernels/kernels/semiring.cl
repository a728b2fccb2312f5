// Matrix products over semirings, in OpenCL C: the preamble of every kernel of the family. A kernel is this text
// followed by one macro line, such as GEMM(gemm_max_plus_f32, max_plus, float). semiring.cu is the same in CUDA C++.
//
// A semiring has a sum and a product. C[i][j] is the sum over k of A[i][k] * B[k][j]: with (max, +) the heaviest path
// from i to j through one k, with (min, +) the shortest, with (max, min) the widest. Matrices are dense and row-major.
// One work item computes one element, and the global size can be rounded up. The purpose of this family is to have many
// members, not to be the fastest GEMM: the code is as simple as possible.
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

// For each semiring: the initial value of its sum, the sum, the product, and the test of whether a product wins. A sum
// that selects is won by the product that it selects. (+, *) selects nothing: the largest product wins.
#define ZERO_plus_times 0
#define ZERO_max_plus (-INFINITY)
#define ZERO_min_plus INFINITY
#define ZERO_max_times (-INFINITY)
#define ZERO_min_times INFINITY
#define ZERO_max_min (-INFINITY)

#define SUM_plus_times(a, b) ((a) + (b))
#define SUM_max_plus(a, b) ((a) > (b) ? (a) : (b))
#define SUM_min_plus(a, b) ((a) < (b) ? (a) : (b))
#define SUM_max_times(a, b) SUM_max_plus(a, b)
#define SUM_min_times(a, b) SUM_min_plus(a, b)
#define SUM_max_min(a, b) SUM_max_plus(a, b)

#define PRODUCT_plus_times(a, b) ((a) * (b))
#define PRODUCT_max_plus(a, b) ((a) + (b))
#define PRODUCT_min_plus(a, b) ((a) + (b))
#define PRODUCT_max_times(a, b) ((a) * (b))
#define PRODUCT_min_times(a, b) ((a) * (b))
#define PRODUCT_max_min(a, b) ((a) < (b) ? (a) : (b))

#define WORST_plus_times (-INFINITY)
#define WORST_max_plus (-INFINITY)
#define WORST_min_plus INFINITY
#define WORST_max_times (-INFINITY)
#define WORST_min_times INFINITY
#define WORST_max_min (-INFINITY)

#define WINS_plus_times(a, best) ((a) > (best))
#define WINS_max_plus(a, best) ((a) > (best))
#define WINS_min_plus(a, best) ((a) < (best))
#define WINS_max_times(a, best) ((a) > (best))
#define WINS_min_times(a, best) ((a) < (best))
#define WINS_max_min(a, best) ((a) > (best))

// C = A * B, where A is rows × inner, B is inner × columns and C is rows × columns.
#define GEMM(name, semiring, type)                                                                        \
  __kernel void name(uint rows, uint columns, uint inner, __global const type* a, __global const type* b, \
                     __global type* c) {                                                                  \
    const size_t column = get_global_id(0);                                                               \
    const size_t row = get_global_id(1);                                                                  \
    if (row >= rows || column >= columns) return;                                                         \
    type sum = ZERO_##semiring;                                                                           \
    for (size_t k = 0; k < inner; ++k) {                                                                  \
      const type product = PRODUCT_##semiring(a[row * inner + k], b[k * columns + column]);               \
      sum = SUM_##semiring(sum, product);                                                                 \
    }                                                                                                     \
    c[row * columns + column] = sum;                                                                      \
  }

// Like GEMM, and writes the first k whose product won; -1 if none did, for example if no k has a finite product.
#define ARGMAX(name, semiring, type)                                                                      \
  __kernel void name(uint rows, uint columns, uint inner, __global const type* a, __global const type* b, \
                     __global type* c, __global int* winner) {                                            \
    const size_t column = get_global_id(0);                                                               \
    const size_t row = get_global_id(1);                                                                  \
    if (row >= rows || column >= columns) return;                                                         \
    type sum = ZERO_##semiring;                                                                           \
    type best = WORST_##semiring;                                                                         \
    int won = -1;                                                                                         \
    for (size_t k = 0; k < inner; ++k) {                                                                  \
      const type product = PRODUCT_##semiring(a[row * inner + k], b[k * columns + column]);               \
      sum = SUM_##semiring(sum, product);                                                                 \
      if (WINS_##semiring(product, best)) {                                                               \
        best = product;                                                                                   \
        won = (int)k;                                                                                     \
      }                                                                                                   \
    }                                                                                                     \
    c[row * columns + column] = sum;                                                                      \
    winner[row * columns + column] = won;                                                                 \
  }

// GEMM for batches of matrices that are stored a stride (in elements) apart. A stride of 0 uses one matrix for all.
#define BATCHED(name, semiring, type)                                                                    \
  __kernel void name(uint rows, uint columns, uint inner, uint batches, ulong stride_a, ulong stride_b,  \
                     ulong stride_c, __global const type* a, __global const type* b, __global type* c) { \
    const size_t column = get_global_id(0);                                                              \
    const size_t row = get_global_id(1);                                                                 \
    const size_t batch = get_global_id(2);                                                               \
    if (row >= rows || column >= columns || batch >= batches) return;                                    \
    a += batch * stride_a;                                                                               \
    b += batch * stride_b;                                                                               \
    type sum = ZERO_##semiring;                                                                          \
    for (size_t k = 0; k < inner; ++k) {                                                                 \
      const type product = PRODUCT_##semiring(a[row * inner + k], b[k * columns + column]);              \
      sum = SUM_##semiring(sum, product);                                                                \
    }                                                                                                    \
    c[batch * stride_c + row * columns + column] = sum;                                                  \
  }

// Backward through a sum that selects: the gradient of C[i][j] is passed only to the pair that won it. Through the
// product + it is unchanged; through * it is multiplied by the other factor.
#define FACTOR_plus(other) 1
#define FACTOR_times(other) (other)

// dA[i][k] is the sum over j of dC[i][j] where k won; `other` is B. One work item sums each element in a fixed order,
// so that the result is deterministic.
#define BACKWARD_A(name, product, type)                                                                                \
  __kernel void name(uint rows, uint columns, uint inner, __global const type* gradient_c, __global const int* winner, \
                     __global const type* other, __global type* gradient_a) {                                          \
    const size_t k = get_global_id(0);                                                                                 \
    const size_t row = get_global_id(1);                                                                               \
    if (row >= rows || k >= inner) return;                                                                             \
    type sum = 0;                                                                                                      \
    for (size_t column = 0; column < columns; ++column) {                                                              \
      const size_t at = row * columns + column;                                                                        \
      if (winner[at] == (int)k) sum += gradient_c[at] * FACTOR_##product(other[k * columns + column]);                 \
    }                                                                                                                  \
    gradient_a[row * inner + k] = sum;                                                                                 \
  }

// dB[k][j] is the sum over i of dC[i][j] where k won; `other` is A.
#define BACKWARD_B(name, product, type)                                                                                \
  __kernel void name(uint rows, uint columns, uint inner, __global const type* gradient_c, __global const int* winner, \
                     __global const type* other, __global type* gradient_b) {                                          \
    const size_t column = get_global_id(0);                                                                            \
    const size_t k = get_global_id(1);                                                                                 \
    if (k >= inner || column >= columns) return;                                                                       \
    type sum = 0;                                                                                                      \
    for (size_t row = 0; row < rows; ++row) {                                                                          \
      const size_t at = row * columns + column;                                                                        \
      if (winner[at] == (int)k) sum += gradient_c[at] * FACTOR_##product(other[row * inner + k]);                      \
    }                                                                                                                  \
    gradient_b[k * columns + column] = sum;                                                                            \
  }
