#include "session/remote_parts.hpp"

#include "base/error.hpp"
#include "base/files.hpp"
#include "http/http_depot.hpp"
#include "redis/redis_leases.hpp"
#include "remote/directory_depot.hpp"
#include "remote/directory_leases.hpp"

namespace kiln {
namespace {

constexpr std::size_t kFingerprintDigits = 16;

}  // namespace

Result<std::shared_ptr<Depot>> open_depot(const Config& config) {
  if (config.remote.empty()) return std::shared_ptr<Depot>();
  if (config.remote.front() == '/') return std::shared_ptr<Depot>(std::make_shared<DirectoryDepot>(config.remote));
  auto depot = open_http_depot(
      {config.remote, config.remote_token_file, config.remote_ca, config.remote_client_cert, config.remote_client_key});
  if (!depot) return depot.error();
  return std::shared_ptr<Depot>(std::move(*depot));
}

Result<std::shared_ptr<LeaseTable>> open_leases(const Config& config) {
  if (config.lease.empty()) return std::shared_ptr<LeaseTable>();
  if (config.lease.front() == '/') {
    return std::shared_ptr<LeaseTable>(std::make_shared<DirectoryLeases>(config.lease));
  }
  auto table = open_redis_leases({config.lease, config.lease_password_file, config.lease_ca});
  if (!table) return table.error();
  return std::shared_ptr<LeaseTable>(std::move(*table));
}

Result<std::shared_ptr<const Signer>> signer_of(const Config& config) {
  if (config.remote_sign.empty()) return std::shared_ptr<const Signer>();
  auto key = SecretKey::read(config.remote_sign);
  if (!key) return key.error();
  if (config.remote_certificate.empty() && config.remote_namespace.empty()) {
    return failure(Code::InvalidArgument,
                   "remote.sign names a key, but nothing says for whom it speaks: set remote.certificate for a host of "
                   "a live namespace, or remote.namespace");
  }
  if (config.remote_certificate.empty()) {
    auto signer = Signer::ci(std::move(*key), config.remote_namespace, config.remote_epoch);
    if (!signer) return signer.error();
    return std::shared_ptr<const Signer>(std::make_shared<Signer>(std::move(*signer)));
  }
  auto certificate = Certificate::read(config.remote_certificate);
  if (!certificate) return certificate.error();
  auto signer = Signer::live(std::move(*key), std::move(*certificate));
  if (!signer) return signer.error();
  return std::shared_ptr<const Signer>(std::make_shared<Signer>(std::move(*signer)));
}

FleetPolicy fleet_policy_of(const Config& config) {
  FleetPolicy policy;
  policy.budget = config.remote_budget;
  policy.lease = config.lease_time;
  return policy;
}

std::string fetched_root(const std::string& cache_root, const TrustPolicy& policy) {
  return join_path(cache_root, kFetched + policy.fingerprint().hex().substr(0, kFingerprintDigits));
}

}  // namespace kiln
