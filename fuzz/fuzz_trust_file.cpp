// Any bytes as a policy file. No file is read.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz_check.hpp"
#include "session/trust_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto policy = kiln::parse_trust_policy({reinterpret_cast<const char*>(data), size});
  if (!policy) {
    kiln::fuzz::require(policy.error().message.starts_with("line ") || size > (1 << 20), "what is wrong has a place");
    return 0;
  }
  kiln::fuzz::require(!policy->allows_unsigned(), "no file allows what nobody signed");
  const kiln::Statement statement = {"kiln bundle 1", "acme/vision", ~0ULL, {}};
  kiln::fuzz::require(!policy->admit(statement, nullptr).ok(), "nobody is believed without a signature");
  const kiln::Signature signature;
  kiln::fuzz::require(!policy->admit(statement, &signature).ok(), "nobody is believed with an empty one");
  return 0;
}
