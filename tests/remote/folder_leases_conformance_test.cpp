#include <unistd.h>

#include "conformance/claims_conformance.hpp"
#include "conformance/lease_table_conformance.hpp"
#include "remote/directory_leases.hpp"
#include "support/fleet_party.hpp"
#include "support/processes.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using Outcome = Claims::Outcome;

struct FolderTables {
  TemporaryDirectory folder;
  std::unique_ptr<LeaseTable> table() const { return std::make_unique<DirectoryLeases>(folder.path()); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Folder, LeaseTableConformance, FolderTables);

struct FolderParties {
  TemporaryDirectory folder;
  std::unique_ptr<Claims> party() const {
    return std::make_unique<FleetClaims>(fleet_parts(std::make_shared<DirectoryLeases>(folder.path())));
  }
  static std::chrono::milliseconds takeover() { return quick_takeover(); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Folder, ClaimsConformance, FolderParties);

RequestKey asked_for(int number) { return {sha256("asked for " + std::to_string(number))}; }

TEST(FleetClaims, OfAParentAreNotTheChildsAndDestroyingTheCopyReleasesNothing) {
  const TemporaryDirectory folder;
  FleetClaims claims(fleet_parts(std::make_shared<DirectoryLeases>(folder.path())));
  auto mine = claims.acquire(asked_for(1), 0ms);
  ASSERT_EQ(mine.outcome, Outcome::Mine);
  Forked child([&](const Forked::Side& side) {
    const bool kept_out = claims.acquire(asked_for(1), 0ms).outcome == Outcome::TimedOut;
    mine.claim.reset();
    const bool still = claims.acquire(asked_for(1), 0ms).outcome == Outcome::TimedOut;
    auto own = claims.acquire(asked_for(2), 0ms);
    side.say(kept_out && still && own.outcome == Outcome::Mine ? "as it should be" : "not so");
    (void)side.hear();
    own.claim.reset();
    side.say(threads_named("kiln-leases") <= 1 ? "released" : "two keepers");
  });
  EXPECT_EQ(child.line(), "as it should be");
  std::this_thread::sleep_for(600ms);  // longer than a lease: the child's keeper renews its own, ours ours
  EXPECT_EQ(claims.acquire(asked_for(1), 0ms).outcome, Outcome::TimedOut);
  EXPECT_EQ(claims.acquire(asked_for(2), 0ms).outcome, Outcome::TimedOut);
  child.say("let go");
  EXPECT_EQ(child.line(), "released");
  EXPECT_EQ(claims.acquire(asked_for(2), 0ms).outcome, Outcome::Mine);
}

}  // namespace
}  // namespace kiln::test
