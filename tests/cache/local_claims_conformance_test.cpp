// SPDX-License-Identifier: Apache-2.0
#include "conformance/claims_conformance.hpp"

#include "cache/local_claims.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

struct LocalParties {
  TemporaryDirectory directory;
  std::unique_ptr<Claims> participant() { return std::make_unique<LocalClaims>(directory.path()); }
  static std::chrono::milliseconds takeover() { return std::chrono::seconds(10); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Local, ClaimsConformance, LocalParties);

}  // namespace
}  // namespace kiln::test
