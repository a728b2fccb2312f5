// A function of a program that has a session and other common objects.
#include <chrono>
#include <string>
#include <vector>
#include <kiln/cccl.hpp>
#include <kiln/kiln.hpp>
#include <kiln/stream.hpp>
using namespace std::chrono_literals;
kiln::Unit pip();
kiln::Unit scan();
int fallback(const kiln::Error& error);
kiln::Status my_own_sort(const kiln::cccl::Call& call);
int block(kiln::Session& session, void* stream, const void* keys, const void* sorted_keys, const void* values,
          const void* sorted_values, std::uint64_t n, const kiln::cccl::Spec& spec, const kiln::cccl::Call& call,
          const std::string& source, const std::string& text, const std::string& folder, const kiln::Bytes& bytes) {
@block@
  return 0;
}
