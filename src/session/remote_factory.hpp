// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "remote/fleet_policy.hpp"
#include "remote/lease_table.hpp"
#include "remote/object_store.hpp"
#include "session/config/config.hpp"
#include "trust/namespace_scope.hpp"
#include "trust/policy.hpp"
#include "trust/signer.hpp"

namespace kiln {

/// Returns the object store that the configuration names, or null if it names none. Opens nothing yet.
Result<std::shared_ptr<ObjectStore>> open_object_store(const Config& config);
/// Returns the lease table that the configuration names, or null if it names none. Opens nothing yet.
Result<std::shared_ptr<LeaseTable>> open_leases(const Config& config);
/// Returns the signer with which this host publishes, or null for a reader. Reads the key and the certificate.
Result<std::shared_ptr<const Signer>> make_signer(const Config& config);
/// Returns the fleet policy with the values that the configuration sets.
FleetPolicy make_fleet_policy(const Config& config);

/// Returns the directory for entries fetched from the remote store on this host. It is next to the cache and not inside
/// it, because bundles are signed from the cache. Its name contains a fingerprint of the policy and the scope, so that
/// entries accepted under another policy, or served by namespaces of another scope, are not used.
std::string fetched_root(const std::string& cache_root, const TrustPolicy& policy, const NamespaceScope& scope = {});
/// Returns the namespaces that the configuration names for the remote store, in addition to those of the scope and the
/// policy.
std::vector<std::string> remote_namespaces_of(const Config& config);
/// Prefix of the names of these directories.
inline constexpr const char* kFetched = "fetched-";

}  // namespace kiln
