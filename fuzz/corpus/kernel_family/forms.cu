#include <cstdint>
#define KERNEL extern "C" __global__ void
#define CAT(a, b) a##b
#define SCALE(T, suffix)                         \
  KERNEL __launch_bounds__(256) scale_##suffix(T* x) { \
    x[0] *= 2; /* GEMM(a) */ \
  }
#define BOTH(s) SCALE(float, f_##s) SCALE(double, d_##s);
#define TWO(a, b) KERNEL a() {} KERNEL b() {}
#define LIST(X) X(one) X(two)
#define ZERO(name) extern "C" __global__ void zero_##name(int* p) { *p = 0; }
#define ODD(n) KERNEL CAT(odd_, n)(int) {}
template <class T, int N = 4>
__global__ void __launch_bounds__(128) fill(T* x) { x[0] = N; }
template <class T> __global__ void lonely(T* x) {}
template <> __global__ void lonely<int>(int* x) {}
template __global__ void fill<float, 8>(float*);
template __global__ void fill<double,
   4>(double*);
template __global__ void lonely(char*);
extern "C" __global__ void plain(int* p) { SOMETHING(p); }
SCALE(int, i)  // trailing
SCALE(int64_t,
      i64);
BOTH(x)
TWO(a1, b1)
LIST(ZERO)
LIST(ZERO)
ODD(3)
#ifdef X
SCALE(char, c)
#endif
namespace n {
SCALE(short, s)
}
void host() { plain<<<1, 2>>>(0); const char* s = R"(SCALE(q,q))"; }
