// A function of a program that uses kiln-runtime.
#include <vector>
#include <kiln/runtime.hpp>
struct Cache {
  bool drop(std::size_t bytes);
};
int fail(const kiln::Error& error);
int block(kiln::runtime::Runtime& runtime, const std::vector<kiln::runtime::CalibrationCase>& cases, Cache& cache) {
@block@
  return 0;
}
