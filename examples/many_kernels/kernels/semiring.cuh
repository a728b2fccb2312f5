// Matrix products over semirings, in CUDA C++: the preamble of every kernel of the family. A kernel is this text
// followed by one macro line, such as GEMM(gemm_max_plus_f32, max_plus, f32). semiring.cl is the same in OpenCL C and
// explains semirings. semiring.cu has all 31 lines.
//
// One thread computes one element, and the grid can be rounded up. The purpose of this family is to have many members,
// not to be the fastest GEMM: the code is as simple as possible.

using f32 = float;
using f64 = double;
using i32 = int;
using i64 = long long;

template <class T>
__device__ T highest() {
  return static_cast<T>(__longlong_as_double(0x7ff0000000000000LL));  // infinity
}
template <>
__device__ i32 highest<i32>() {
  return 0x7fffffff;
}
template <>
__device__ i64 highest<i64>() {
  return 0x7fffffffffffffffLL;
}

// For each semiring: its zero, the product, and the test of whether a sum selects a product. A product with zero is
// zero, for integers as for infinity.
template <class T>
struct max_plus {
  static __device__ T zero() { return -highest<T>(); }
  static __device__ T product(T a, T b) { return a == zero() || b == zero() ? zero() : a + b; }
  static __device__ bool wins(T a, T best) { return a > best; }
};

template <class T>
struct min_plus {
  static __device__ T zero() { return highest<T>(); }
  static __device__ T product(T a, T b) { return a == zero() || b == zero() ? zero() : a + b; }
  static __device__ bool wins(T a, T best) { return a < best; }
};

// The numbers of (max, *) are not negative.
template <class T>
struct max_times {
  static __device__ T zero() { return 0; }
  static __device__ T product(T a, T b) { return a * b; }
  static __device__ bool wins(T a, T best) { return a > best; }
};

struct Shape {
  unsigned rows;
  unsigned columns;
  unsigned inner;
};

template <class T>
struct Element {
  T sum;
  int won;  // first k whose product won; -1 if all products are zero
};

// Returns one element of A * B, where A is rows × inner and B is inner × columns.
template <class Semiring, class T>
__device__ Element<T> element(Shape shape, const T* a, const T* b, size_t row, size_t column) {
  Element<T> result = {Semiring::zero(), -1};
  for (size_t k = 0; k < shape.inner; ++k) {
    const T product = Semiring::product(a[row * shape.inner + k], b[k * shape.columns + column]);
    if (Semiring::wins(product, result.sum)) result = {product, static_cast<int>(k)};
  }
  return result;
}

__device__ size_t global_x() { return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ size_t global_y() { return static_cast<size_t>(blockIdx.y) * blockDim.y + threadIdx.y; }
__device__ size_t global_z() { return static_cast<size_t>(blockIdx.z) * blockDim.z + threadIdx.z; }

// All kernels have blocks of 16 × 16 threads, which the compiler can use.
#define KERNEL extern "C" __global__ void __launch_bounds__(256)

// C = A * B
#define GEMM(name, semiring, type)                                                                      \
  KERNEL name(unsigned rows, unsigned columns, unsigned inner, const type* a, const type* b, type* c) { \
    const size_t column = global_x(), row = global_y();                                                 \
    if (row >= rows || column >= columns) return;                                                       \
    c[row * columns + column] = element<semiring<type>>({rows, columns, inner}, a, b, row, column).sum; \
  }

// Like GEMM, and writes for each element the k that won it.
#define ARGMAX(name, semiring, type)                                                                                 \
  KERNEL name(unsigned rows, unsigned columns, unsigned inner, const type* a, const type* b, type* c, int* winner) { \
    const size_t column = global_x(), row = global_y();                                                              \
    if (row >= rows || column >= columns) return;                                                                    \
    const auto result = element<semiring<type>>({rows, columns, inner}, a, b, row, column);                          \
    c[row * columns + column] = result.sum;                                                                          \
    winner[row * columns + column] = result.won;                                                                     \
  }

// GEMM for batches of matrices that are stored a stride (in elements) apart. A stride of 0 uses one matrix for all.
#define BATCHED(name, semiring, type)                                                                            \
  KERNEL name(unsigned rows, unsigned columns, unsigned inner, unsigned batches, unsigned long long stride_a,    \
              unsigned long long stride_b, unsigned long long stride_c, const type* a, const type* b, type* c) { \
    const size_t column = global_x(), row = global_y(), batch = global_z();                                      \
    if (row >= rows || column >= columns || batch >= batches) return;                                            \
    a += batch * stride_a;                                                                                       \
    b += batch * stride_b;                                                                                       \
    c[batch * stride_c + row * columns + column] =                                                               \
        element<semiring<type>>({rows, columns, inner}, a, b, row, column).sum;                                  \
  }

// Backward through (max, +) or (min, +): the gradient of C[i][j] is passed unchanged to the pair that won it.

// dA[i][k] is the sum over j of dC[i][j] where k won. One thread sums each element in a fixed order, so that the result
// is deterministic.
#define BACKWARD_A(name, type)                                                                            \
  KERNEL name(unsigned rows, unsigned columns, unsigned inner, const type* gradient_c, const int* winner, \
              type* gradient_a) {                                                                         \
    const size_t k = global_x(), row = global_y();                                                        \
    if (row >= rows || k >= inner) return;                                                                \
    type sum = 0;                                                                                         \
    for (size_t column = 0; column < columns; ++column) {                                                 \
      const size_t at = row * columns + column;                                                           \
      if (winner[at] == static_cast<int>(k)) sum += gradient_c[at];                                       \
    }                                                                                                     \
    gradient_a[row * inner + k] = sum;                                                                    \
  }

// dB[k][j] is the sum over i of dC[i][j] where k won.
#define BACKWARD_B(name, type)                                                                            \
  KERNEL name(unsigned rows, unsigned columns, unsigned inner, const type* gradient_c, const int* winner, \
              type* gradient_b) {                                                                         \
    const size_t column = global_x(), k = global_y();                                                     \
    if (k >= inner || column >= columns) return;                                                          \
    type sum = 0;                                                                                         \
    for (size_t row = 0; row < rows; ++row) {                                                             \
      const size_t at = row * columns + column;                                                           \
      if (winner[at] == static_cast<int>(k)) sum += gradient_c[at];                                       \
    }                                                                                                     \
    gradient_b[k * columns + column] = sum;                                                               \
  }
