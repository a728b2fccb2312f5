#include "conformance/claims_conformance.hpp"

#include "claim/local_claims.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

struct LocalParties {
  TemporaryDirectory folder;
  std::unique_ptr<Claims> party() { return std::make_unique<LocalClaims>(folder.path()); }
  static std::chrono::milliseconds takeover() { return std::chrono::seconds(1); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Local, ClaimsConformance, LocalParties);

}  // namespace
}  // namespace kiln::test
