// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "conformance/claims_conformance.hpp"
#include "conformance/lease_table_conformance.hpp"
#include "remote/directory_leases.hpp"
#include "support/fixtures/fleet_claims_fixture.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/processes.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using Outcome = Claims::Outcome;

struct DirectoryTables {
  TemporaryDirectory directory;
  std::unique_ptr<LeaseTable> table() const { return std::make_unique<DirectoryLeases>(directory.path()); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Folder, LeaseTableConformance, DirectoryTables);

struct DirectoryParties {
  TemporaryDirectory directory;
  std::unique_ptr<Claims> participant() const {
    return std::make_unique<FleetClaims>(fleet_parts(std::make_shared<DirectoryLeases>(directory.path())));
  }
  static std::chrono::milliseconds takeover() { return quick_takeover(); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Folder, ClaimsConformance, DirectoryParties);

RequestKey asked_for(int number) { return {sha256("asked for " + std::to_string(number))}; }

TEST(FleetClaims, ForkedChildDoesNotOwnOrReleaseClaims) {
  const TemporaryDirectory directory;
  FleetClaims claims(fleet_parts(std::make_shared<DirectoryLeases>(directory.path())));
  auto mine = claims.acquire(asked_for(1), 0ms, {});
  ASSERT_EQ(mine.outcome, Outcome::Acquired);
  Forked child([&](const Forked::Side& side) {
    const bool kept_out = claims.acquire(asked_for(1), 0ms, {}).outcome == Outcome::TimedOut;
    mine.claim.reset();
    const bool still = claims.acquire(asked_for(1), 0ms, {}).outcome == Outcome::TimedOut;
    auto own = claims.acquire(asked_for(2), 0ms, {});
    side.say(kept_out && still && own.outcome == Outcome::Acquired ? "passed" : "failed");
    (void)side.receive();
    own.claim.reset();
    side.say(threads_named("kiln-leases") <= 1 ? "released" : "two renewal threads");
  });
  EXPECT_EQ(child.line(), "passed");
  std::this_thread::sleep_for(quick_fleet().lease_ttl +
                              500ms);  // longer than a lease: child and parent each renew their own
  EXPECT_EQ(claims.acquire(asked_for(1), 0ms, {}).outcome, Outcome::TimedOut);
  EXPECT_EQ(claims.acquire(asked_for(2), 0ms, {}).outcome, Outcome::TimedOut);
  child.say("let go");
  EXPECT_EQ(child.line(), "released");
  EXPECT_EQ(claims.acquire(asked_for(2), 0ms, {}).outcome, Outcome::Acquired);
}

}  // namespace
}  // namespace kiln::test
