
#include "apps/kiln/bundle_files.hpp"
#include "apps/kiln/console.hpp"
#include "apps/kiln/examine.hpp"
#include "base/clock.hpp"
#include "session/remote_parts.hpp"
#include "trust/signed_statement.hpp"

namespace kiln::cli {
namespace {

using State = Finding::State;

constexpr std::chrono::seconds kPatience{5};

// What a host may do in the fleet, and for how long. Sets the finding's state where that is trouble.
std::string role_of(const Config& config, Finding& finding) {
  const auto signer = kiln::signer_of(config);
  if (!signer) {
    finding.state = State::Problem;
    finding.advice = "see to remote.sign; until then this host only reads";
    return "none: " + signer.error().message;
  }
  if (*signer == nullptr) return "reader: what it compiles it keeps to itself (remote.sign)";
  if (!(*signer)->is_live()) {
    return "CI signer: publishes as " + (*signer)->name_space() + ", epoch " + std::to_string(config.remote_epoch);
  }
  const auto certificate = Certificate::read(config.remote_certificate);
  if (!certificate) return "live signer: publishes as " + (*signer)->name_space();
  const std::uint64_t today = day_of(system_clock().wall());
  const std::string until = day_text(certificate->last_day);
  if (certificate->last_day < today) {
    finding.state = State::Problem;
    finding.advice = "'kiln key certify' gives it a new certificate; until then nobody believes what it publishes";
    return "live signer: its certificate for " + (*signer)->name_space() + " ended with " + until;
  }
  return "live signer: publishes as " + (*signer)->name_space() + " until " + until;
}

// Whom it believes: without a key nothing that the store has is ever used.
std::string belief_of(const Config& config, Finding& finding) {
  const Result<TrustPolicy> policy = configured_policy(config);
  if (policy && !policy->empty()) {
    std::string text = config.trust.empty() ? "what nobody signed (trust.unsigned)" : config.trust;
    const std::string live = joined(policy->live());
    return text + (live.empty() ? "; no live namespace" : "; live: " + live);
  }
  finding.state = State::Problem;
  finding.advice = "name the keys that may publish in a policy file (trust, KILN_TRUST); docs/fleet.md";
  return policy ? "nobody: nothing that it has is used here" : policy.error().message;
}

// How long the answer took, or why there was none, which sets the finding's state.
template <class Server>
std::string answer_of(Server& server, const std::string& what, Finding& finding) {
  const auto start = system_clock().steady();
  const Status answered = server.probe(kPatience);
  if (answered) return "answers in " + time_text(milliseconds_since(system_clock(), start));
  finding.state = State::Problem;
  finding.advice =
      "see that it runs and can be reached from here; until it answers programs go on without it, and " + what;
  return answered.error().message;
}

}  // namespace

Finding examine_remote(const Config& config) {
  Finding finding{State::Good, "remote", {}, "nothing to do; 'kiln remote stats' says what is there", {}};
  if (config.remote.empty()) {
    finding.text = "none is configured: this host shares nothing with others";
    finding.advice = "nothing to do; docs/fleet.md says what it is for";
    return finding;
  }
  const auto depot = open_depot(config);
  if (!depot) {
    finding.state = State::Problem;
    finding.text = config.remote + " is left out: " + depot.error().message;
    finding.advice = "correct the setting, or install what it says is missing";
    return finding;
  }
  finding.details.push_back({"what", "value"});
  const std::string believes = belief_of(config, finding);
  const std::string role = role_of(config, finding);
  finding.text = (*depot)->describe() + ": " + answer_of(**depot, "compile what others have", finding);
  finding.details.push_back({"role", role});
  finding.details.push_back({"believes", believes});
  finding.details.push_back(
      {"may take", std::to_string(config.remote_budget.count()) + " ms of a request (remote.budget)"});
  return finding;
}

Finding examine_lease(const Config& config) {
  Finding finding{State::Good, "lease", {}, "nothing to do", {}};
  if (config.lease.empty()) {
    finding.text = "none is configured: hosts do not wait for each other";
    finding.advice =
        config.remote.empty() ? "nothing to do" : "fine for few hosts; docs/fleet.md says when it is worth it";
    return finding;
  }
  if (config.remote.empty()) {
    finding.state = State::Note;
    finding.text = config.lease + " is not used: there is no remote store by which one host's work could help another";
    finding.advice = "set 'remote' too, or take 'lease' out";
    return finding;
  }
  const auto leases = open_leases(config);
  if (!leases) {
    finding.state = State::Problem;
    finding.text = config.lease + " is left out: " + leases.error().message;
    finding.advice = "correct the setting; for TLS to Redis docs/fleet.md has a sidecar";
    return finding;
  }
  finding.text = (*leases)->describe() + ": " + answer_of(**leases, "hosts may compile the same thing", finding);
  finding.details.push_back({"what", "value"});
  finding.details.push_back({"lapses after", std::to_string(config.lease_time.count()) + " s (lease.time)"});
  return finding;
}

}  // namespace kiln::cli
