// SPDX-License-Identifier: Apache-2.0

#include "apps/kiln/bundle/bundle_files.hpp"
#include "apps/kiln/doctor/doctor_checks.hpp"
#include "apps/kiln/output/console.hpp"
#include "base/clock.hpp"
#include "base/visible_text.hpp"
#include "remote/remote_store.hpp"
#include "session/remote_factory.hpp"
#include "trust/signed_statement.hpp"

namespace kiln::cli {
namespace {

using State = DoctorCheck::State;

constexpr std::chrono::seconds kHangTimeout{5};

// Returns the role of this host in the fleet and its expiry. Sets the state of the finding if there is a problem.
std::string role_text(const Config& config, DoctorCheck& finding) {
  const auto signer = kiln::make_signer(config);
  if (!signer) {
    finding.state = State::Problem;
    finding.advice = "fix remote.signing_key; until then this host only reads";
    return "none: " + signer.error().message;
  }
  if (*signer == nullptr) {
    return "reader: does not publish what it compiles; to publish, set remote.signing_key to a key of 'kiln key "
           "generate'";
  }
  if (!(*signer)->is_live()) {
    return "CI signer: publishes as " + (*signer)->name_space() + ", epoch " + std::to_string(config.remote_epoch);
  }
  const auto certificate = Certificate::read(config.remote_certificate);
  if (!certificate) return "live signer: publishes as " + (*signer)->name_space();
  const std::uint64_t today = day_of(system_clock().wall());
  const std::string until = day_text(certificate->last_day);
  if (certificate->last_day < today) {
    finding.state = State::Problem;
    finding.advice =
        "create a new certificate with 'kiln key certify'; until then other hosts reject what it publishes";
    return "live signer: its certificate for " + (*signer)->name_space() + " expired after " + until;
  }
  return "live signer: publishes as " + (*signer)->name_space() + " until " + until;
}

// Returns the policy that this host uses. Without a trusted key no remote entry is used.
std::string trust_text(const Config& config, DoctorCheck& finding) {
  const Result<TrustPolicy> policy = configured_policy(config);
  if (policy && !policy->empty()) {
    std::string text = config.trust_policy.empty() ? "unsigned entries (trust.unsigned)" : config.trust_policy;
    const std::string live = join_strings(policy->live());
    return text + (live.empty() ? "; no live namespace" : "; live: " + live);
  }
  finding.state = State::Problem;
  finding.advice =
      "trust the key of the publisher with 'kiln trust add KEY --namespace NAME'; docs/how-to/share-a-cache.md";
  return policy ? "no trusted keys: remote entries are not used" : policy.error().message;
}

// Returns the namespaces that this host requests. A policy with only wildcards names none.
std::string namespaces_of(const Config& config, DoctorCheck& finding) {
  const Result<TrustPolicy> policy = configured_policy(config);
  if (!policy || policy->empty()) return "none";
  std::vector<std::string> more = remote_namespaces_of(config);
  if (const auto signer = kiln::make_signer(config); signer && *signer != nullptr)
    more.push_back((*signer)->name_space());
  const NamespaceScope scope = NamespaceScope().narrowed(config.trust_namespaces);
  std::vector<std::string> left_out;
  const auto names = remote_namespaces(*policy, more, scope, &left_out);
  if (names.empty() || !left_out.empty()) {
    finding.state = State::Problem;
    finding.advice = "list the namespaces to read in trust.namespaces (KILN_TRUST_NAMESPACES), at most " +
                     std::to_string(kMaxRemoteNamespaces) + "; docs/how-to/sign-and-trust.md";
  }
  const std::string text =
      names.empty() ? "none: the policy names no namespace without a wildcard" : join_strings(names);
  return left_out.empty() ? text : text + "; not " + join_strings(left_out);
}

// Probes a server. Returns its response time, or the error, which also sets the state of the finding.
template <class Server>
std::string probe_text(Server& server, const std::string& what, DoctorCheck& finding) {
  const auto start = system_clock().steady();
  const Status answered = server.probe(kHangTimeout);
  if (answered) return "responds in " + time_text(milliseconds_since(system_clock(), start));
  finding.state = State::Problem;
  finding.advice = "check that the server runs and is reachable; until then programs work without it and " + what;
  return answered.error().message;
}

// A server responds with the same status for an object that it does not have and for a wrong path, so that a probe
// succeeds there.
void check_path(ObjectStore& object_store, DoctorCheck& finding) {
  if (finding.state != State::Ok) return;
  const Result<bool> found = object_store.has_bucket(ObjectStore::Bucket::ActionCache, kHangTimeout);
  if (!found || *found) return;
  finding.state = State::Info;
  finding.text += ", but has no folder 'ac': the path in remote.url is wrong, or no host has published yet";
  finding.advice = "compare remote.url with the setting of a host that publishes";
}

}  // namespace

DoctorCheck check_remote(const Config& config) {
  DoctorCheck finding{State::Ok, "remote", {}, "nothing to do; 'kiln remote stats' shows its contents", {}};
  if (config.remote_url.empty()) {
    finding.text = "none configured: this host shares nothing with other hosts";
    finding.advice = "nothing to do; docs/how-to/share-a-cache.md describes the remote store";
    return finding;
  }
  const auto object_store = open_object_store(config);
  if (!object_store) {
    finding.state = State::Problem;
    finding.text = visible_url(config.remote_url) + " is not used: " + object_store.error().message;
    finding.advice = "fix the setting, or install the missing component";
    return finding;
  }
  finding.details.push_back({"what", "value"});
  const std::string trusts = trust_text(config, finding);
  const std::string reads = namespaces_of(config, finding);
  const std::string role = role_text(config, finding);
  finding.text = (*object_store)->describe() + ": " +
                 probe_text(**object_store, "compile units that other hosts already have", finding);
  check_path(**object_store, finding);
  finding.details.push_back({"role", role});
  finding.details.push_back({"trusts", trusts});
  finding.details.push_back({"reads", reads});
  finding.details.push_back(
      {"budget", std::to_string(config.remote_budget.count()) + " ms per request (remote.budget)"});
  return finding;
}

DoctorCheck check_lease(const Config& config) {
  DoctorCheck finding{State::Ok, "lease", {}, "nothing to do", {}};
  if (config.lease_url.empty()) {
    finding.text = "none configured: hosts do not wait for each other";
    finding.advice = config.remote_url.empty()
                         ? "nothing to do"
                         : "not needed for few hosts; docs/how-to/share-a-cache.md describes when it is useful";
    return finding;
  }
  if (config.remote_url.empty()) {
    finding.state = State::Info;
    finding.text = visible_url(config.lease_url) + " is not used: without a remote store hosts cannot share results";
    finding.advice = "also set 'remote.url', or remove 'lease.url'";
    return finding;
  }
  const auto leases = open_leases(config);
  if (!leases) {
    finding.state = State::Problem;
    finding.text = visible_url(config.lease_url) + " is not used: " + leases.error().message;
    finding.advice = "fix the setting; docs/how-to/share-a-cache.md shows a TLS sidecar for Redis";
    return finding;
  }
  finding.text =
      (*leases)->describe() + ": " + probe_text(**leases, "several hosts may compile the same unit", finding);
  finding.details.push_back({"what", "value"});
  finding.details.push_back({"expires after", std::to_string(config.lease_ttl.count()) + " s (lease.ttl)"});
  return finding;
}

}  // namespace kiln::cli
