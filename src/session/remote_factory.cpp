// SPDX-License-Identifier: Apache-2.0
#include "session/remote_factory.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/hash.hpp"
#include "remote/directory_leases.hpp"
#include "remote/directory_object_store.hpp"
#include "remote/http/http_object_store.hpp"
#include "remote/redis/redis_leases.hpp"
#include "remote/s3/s3_object_store.hpp"

namespace kiln {
namespace {

constexpr std::size_t kFingerprintDigits = 16;

}  // namespace

Result<std::shared_ptr<ObjectStore>> open_object_store(const Config& config) {
  if (config.remote_url.empty()) return std::shared_ptr<ObjectStore>();
  if (config.remote_url.front() == '/')
    return std::shared_ptr<ObjectStore>(std::make_shared<DirectoryObjectStore>(config.remote_url));
  const bool is_s3 = config.remote_url.starts_with("s3:");
  auto object_store = is_s3 ? open_s3_object_store({config.remote_url, config.remote_s3_path_style, config.remote_ca,
                                                    config.remote_client_cert, config.remote_client_key})
                            : open_http_object_store({config.remote_url, config.remote_token_file, config.remote_ca,
                                                      config.remote_client_cert, config.remote_client_key});
  if (!object_store) return object_store.error();
  return std::shared_ptr<ObjectStore>(std::move(*object_store));
}

Result<std::shared_ptr<LeaseTable>> open_leases(const Config& config) {
  if (config.lease_url.empty()) return std::shared_ptr<LeaseTable>();
  if (config.lease_url.front() == '/') {
    return std::shared_ptr<LeaseTable>(std::make_shared<DirectoryLeases>(config.lease_url));
  }
  auto table = open_redis_leases({config.lease_url, config.lease_password_file});
  if (!table) return table.error();
  return std::shared_ptr<LeaseTable>(std::move(*table));
}

Result<std::shared_ptr<const Signer>> make_signer(const Config& config) {
  if (config.remote_signing_key.empty()) return std::shared_ptr<const Signer>();
  auto key = SecretKey::read(config.remote_signing_key);
  if (!key) return key.error();
  if (config.remote_certificate.empty() && config.remote_namespace.empty()) {
    return make_error(Code::InvalidArgument,
                      "remote.signing_key names a key without a namespace: set remote.certificate for a host of "
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

FleetPolicy make_fleet_policy(const Config& config) {
  FleetPolicy policy;
  policy.budget = config.remote_budget;
  // A request that no caller waits for never has less time.
  policy.background_budget = std::max<FleetPolicy::Time>(policy.background_budget, policy.budget);
  policy.lease_ttl = config.lease_ttl;
  return policy;
}

std::string fetched_root(const std::string& cache_root, const TrustPolicy& policy, const NamespaceScope& scope) {
  Digest fingerprint = policy.fingerprint();
  if (!scope.admits_all()) fingerprint = sha256("kiln fetched 1 " + fingerprint.hex() + scope.encode());
  return join_path(cache_root, kFetched + fingerprint.hex().substr(0, kFingerprintDigits));
}

std::vector<std::string> remote_namespaces_of(const Config& config) {
  if (config.remote_namespace.empty()) return {};
  return {config.remote_namespace};
}

}  // namespace kiln
