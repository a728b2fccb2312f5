// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as the signed statement of an entry and as the text of a certificate. Parsed input
// round-trips, and a policy whose keys did not sign it rejects it.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz_check.hpp"
#include "trust/policy.hpp"
#include "trust/signed_statement.hpp"

namespace {

kiln::TrustPolicy some_policy() {
  kiln::TrustPolicy policy;
  kiln::PublicKey key;
  key.bytes.fill(7);
  policy.add_key(key, "*");
  policy.trust_live_namespace("acme/live", 7);
  policy.allow_unsigned();
  return policy;
}

void try_certificate(std::string_view text) {
  const auto certificate = kiln::Certificate::parse(text);
  if (!certificate) return;
  const auto again = kiln::Certificate::parse(certificate->text());
  kiln::fuzz::require(again.has_value() && again->text() == certificate->text(), "a certificate round-trips");
  kiln::fuzz::require(kiln::is_name_space(certificate->name_space), "a certificate is for a namespace");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const kiln::TrustPolicy policy = some_policy();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try_certificate(bytes);
  const auto stated = kiln::SignedStatement::decode(bytes, "kiln entry 1");
  if (!stated) return 0;
  kiln::fuzz::require(stated->encode() == bytes, "the encoding is unique");
  kiln::fuzz::require(size <= kiln::SignedStatement::kMaxBytes, "the size is limited");
  const auto error = policy.verify(*stated, std::chrono::hours(24 * 20000));
  kiln::fuzz::require(error.has_value() && !error->message.empty(),
                      "a statement without a valid signature is rejected");
  return 0;
}
