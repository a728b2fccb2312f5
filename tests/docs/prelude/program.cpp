// A function of a program that has a source, its own stream and the arguments of a kernel.
#include <chrono>
#include <string>
#include <kiln/kiln.hpp>
using namespace std::chrono_literals;
int fallback(const kiln::Error& error);
int block(kiln::Session& session, const std::string& source, const std::string& header, CUstream_st* stream, float* x, int n) {
@block@
  return 0;
}
