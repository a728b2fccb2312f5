// Matrix products over semirings, in CUDA C++: the preamble of every kernel of the family. A kernel is this text
// followed by one macro line, such as GEMM(gemm_max_plus_f32, max_plus, float). semiring.cl is the same in OpenCL C and
// explains semirings.
//
// One thread computes one element, and the grid can be rounded up. The purpose of this family is to have many members,
// not to be the fastest GEMM: the code is as simple as possible.

template <class T>
__device__ T infinity() {
  return static_cast<T>(__longlong_as_double(0x7ff0000000000000LL));
}

// The three sums, each with its initial value and the test of whether a product wins. A sum that selects is won by the
// product that it selects. `Total` selects nothing: the largest product wins.
template <class T>
struct Largest {
  using type = T;
  static __device__ T zero() { return -infinity<T>(); }
  static __device__ T worst() { return -infinity<T>(); }
  static __device__ T sum(T a, T b) { return a > b ? a : b; }
  static __device__ bool wins(T a, T best) { return a > best; }
};

template <class T>
struct Smallest {
  using type = T;
  static __device__ T zero() { return infinity<T>(); }
  static __device__ T worst() { return infinity<T>(); }
  static __device__ T sum(T a, T b) { return a < b ? a : b; }
  static __device__ bool wins(T a, T best) { return a < best; }
};

template <class T>
struct Total : Largest<T> {
  static __device__ T zero() { return 0; }
  static __device__ T sum(T a, T b) { return a + b; }
};

template <class T>
struct plus_times : Total<T> {
  static __device__ T product(T a, T b) { return a * b; }
};
template <class T>
struct max_plus : Largest<T> {
  static __device__ T product(T a, T b) { return a + b; }
};
template <class T>
struct min_plus : Smallest<T> {
  static __device__ T product(T a, T b) { return a + b; }
};
template <class T>
struct max_times : Largest<T> {
  static __device__ T product(T a, T b) { return a * b; }
};
template <class T>
struct min_times : Smallest<T> {
  static __device__ T product(T a, T b) { return a * b; }
};
template <class T>
struct max_min : Largest<T> {
  static __device__ T product(T a, T b) { return a < b ? a : b; }
};

struct Shape {
  unsigned rows;
  unsigned columns;
  unsigned inner;
};

template <class T>
struct Element {
  T sum;
  int won;  // first k whose product won; -1 if none did, for example if no k has a finite product
};

// Returns one element of A * B, where A is rows × inner and B is inner × columns.
template <class Semiring, class T>
__device__ Element<T> element(Shape shape, const T* a, const T* b, size_t row, size_t column) {
  Element<T> result = {Semiring::zero(), -1};
  T best = Semiring::worst();
  for (size_t k = 0; k < shape.inner; ++k) {
    const T product = Semiring::product(a[row * shape.inner + k], b[k * shape.columns + column]);
    result.sum = Semiring::sum(result.sum, product);
    if (Semiring::wins(product, best)) {
      best = product;
      result.won = static_cast<int>(k);
    }
  }
  return result;
}

__device__ size_t global_x() { return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ size_t global_y() { return static_cast<size_t>(blockIdx.y) * blockDim.y + threadIdx.y; }
__device__ size_t global_z() { return static_cast<size_t>(blockIdx.z) * blockDim.z + threadIdx.z; }

// C = A * B
#define GEMM(name, semiring, type)                                                                               \
  extern "C" __global__ void name(unsigned rows, unsigned columns, unsigned inner, const type* a, const type* b, \
                                  type* c) {                                                                     \
    const size_t column = global_x(), row = global_y();                                                          \
    if (row >= rows || column >= columns) return;                                                                \
    c[row * columns + column] = element<semiring<type>>({rows, columns, inner}, a, b, row, column).sum;          \
  }

// Like GEMM, and writes for each element the k that won it.
#define ARGMAX(name, semiring, type)                                                                             \
  extern "C" __global__ void name(unsigned rows, unsigned columns, unsigned inner, const type* a, const type* b, \
                                  type* c, int* winner) {                                                        \
    const size_t column = global_x(), row = global_y();                                                          \
    if (row >= rows || column >= columns) return;                                                                \
    const auto result = element<semiring<type>>({rows, columns, inner}, a, b, row, column);                      \
    c[row * columns + column] = result.sum;                                                                      \
    winner[row * columns + column] = result.won;                                                                 \
  }

// GEMM for batches of matrices that are stored a stride (in elements) apart. A stride of 0 uses one matrix for all.
#define BATCHED(name, semiring, type)                                                                   \
  extern "C" __global__ void name(unsigned rows, unsigned columns, unsigned inner, unsigned batches,    \
                                  unsigned long long stride_a, unsigned long long stride_b,             \
                                  unsigned long long stride_c, const type* a, const type* b, type* c) { \
    const size_t column = global_x(), row = global_y(), batch = global_z();                             \
    if (row >= rows || column >= columns || batch >= batches) return;                                   \
    a += batch * stride_a;                                                                              \
    b += batch * stride_b;                                                                              \
    c[batch * stride_c + row * columns + column] =                                                      \
        element<semiring<type>>({rows, columns, inner}, a, b, row, column).sum;                         \
  }

// Backward through a sum that selects: the gradient of C[i][j] is passed only to the pair that won it. Through the
// product + it is unchanged; through * it is multiplied by the other factor.
template <class T>
struct plus {
  static __device__ T factor(T) { return 1; }
};
template <class T>
struct times {
  static __device__ T factor(T other) { return other; }
};

// dA[i][k] is the sum over j of dC[i][j] where k won; `other` is B. One thread sums each element in a fixed order, so
// that the result is deterministic.
#define BACKWARD_A(name, product, type)                                                                    \
  extern "C" __global__ void name(unsigned rows, unsigned columns, unsigned inner, const type* gradient_c, \
                                  const int* winner, const type* other, type* gradient_a) {                \
    const size_t k = global_x(), row = global_y();                                                         \
    if (row >= rows || k >= inner) return;                                                                 \
    type sum = 0;                                                                                          \
    for (size_t column = 0; column < columns; ++column) {                                                  \
      const size_t at = row * columns + column;                                                            \
      if (winner[at] == static_cast<int>(k))                                                               \
        sum += gradient_c[at] * product<type>::factor(other[k * columns + column]);                        \
    }                                                                                                      \
    gradient_a[row * inner + k] = sum;                                                                     \
  }

// dB[k][j] is the sum over i of dC[i][j] where k won; `other` is A.
#define BACKWARD_B(name, product, type)                                                                             \
  extern "C" __global__ void name(unsigned rows, unsigned columns, unsigned inner, const type* gradient_c,          \
                                  const int* winner, const type* other, type* gradient_b) {                         \
    const size_t column = global_x(), k = global_y();                                                               \
    if (k >= inner || column >= columns) return;                                                                    \
    type sum = 0;                                                                                                   \
    for (size_t row = 0; row < rows; ++row) {                                                                       \
      const size_t at = row * columns + column;                                                                     \
      if (winner[at] == static_cast<int>(k)) sum += gradient_c[at] * product<type>::factor(other[row * inner + k]); \
    }                                                                                                               \
    gradient_b[k * columns + column] = sum;                                                                         \
  }
