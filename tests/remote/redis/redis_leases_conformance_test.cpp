// SPDX-License-Identifier: Apache-2.0
#include "conformance/claims_conformance.hpp"
#include "conformance/lease_table_conformance.hpp"
#include "remote/redis/redis_leases.hpp"
#include "support/fixtures/fleet_claims_fixture.hpp"
#include "support/servers/redis.hpp"

namespace kiln::test {
namespace {

// One server shared by all tables of a test.
struct RedisTables {
  RedisServer server;
  std::unique_ptr<LeaseTable> table() const { return open_redis_leases({server.url(), ""}).value(); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Redis, LeaseTableConformance, RedisTables);

struct RedisParties {
  RedisServer server;
  std::unique_ptr<Claims> participant() const {
    return std::make_unique<FleetClaims>(fleet_parts(open_redis_leases({server.url(), ""}).value()));
  }
  static std::chrono::milliseconds takeover() { return quick_takeover(); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Redis, ClaimsConformance, RedisParties);

}  // namespace
}  // namespace kiln::test
