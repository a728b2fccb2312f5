#pragma once

#include <memory>
#include <string>

#include <kiln/result.hpp>

#include "remote/depot.hpp"
#include "remote/fleet_policy.hpp"
#include "remote/lease_table.hpp"
#include "session/config.hpp"
#include "trust/policy.hpp"
#include "trust/signer.hpp"

namespace kiln {

/// The depot that the configuration names; null where it names none. Nothing is opened yet.
Result<std::shared_ptr<Depot>> open_depot(const Config& config);
/// Likewise the lease table.
Result<std::shared_ptr<LeaseTable>> open_leases(const Config& config);
/// In whose name this host publishes; null for a reader. Reads the key and the certificate.
Result<std::shared_ptr<const Signer>> signer_of(const Config& config);
/// The numbers, as far as the configuration has a say in them.
FleetPolicy fleet_policy_of(const Config& config);

/// Where what came from the remote store is kept on this host: beside the cache and not in it, because bundles are
/// signed from that one. Its name has the policy's fingerprint: what another policy believed is not taken over.
std::string fetched_root(const std::string& cache_root, const TrustPolicy& policy);
/// What those folders' names begin with.
inline constexpr const char* kFetched = "fetched-";

}  // namespace kiln
