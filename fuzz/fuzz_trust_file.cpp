// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as a policy file. Reads no file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz_check.hpp"
#include "session/config/trust_policy_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto policy = kiln::parse_trust_policy({reinterpret_cast<const char*>(data), size});
  if (!policy) {
    kiln::fuzz::require(policy.error().message.starts_with("line "), "an error has a location");
    return 0;
  }
  kiln::fuzz::require(!policy->allows_unsigned(), "a policy file never allows unsigned content");
  const kiln::Statement statement = {"kiln bundle 1", "acme/vision", ~0ULL, {}};
  kiln::fuzz::require(!policy->verify_bundle(statement, nullptr).has_value(), "unsigned content is rejected");
  const kiln::Signature signature;
  kiln::fuzz::require(!policy->verify_bundle(statement, &signature).has_value(), "an empty signature is rejected");
  return 0;
}
