// A function that creates and runs a call of an algorithm.
#include <chrono>
#include <kiln/cccl.hpp>
#include <kiln/kiln.hpp>
using namespace std::chrono_literals;
int fallback(const kiln::Error& error);
int block(kiln::Session& session, kiln::StreamRef stream, const void* keys, const void* sorted_keys, const void* values,
          const void* sorted_values, std::uint64_t n) {
@block@
  return 0;
}
