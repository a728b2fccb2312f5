// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/compile/publishing.hpp"

#include <algorithm>
#include <chrono>

#include "apps/kiln/output/error_hints.hpp"
#include "base/clock.hpp"
#include "base/visible_text.hpp"
#include "remote/entry_verifier.hpp"
#include "remote/remote_store.hpp"
#include "session/config/trust_policy_file.hpp"
#include "session/remote_factory.hpp"

namespace kiln::cli {
namespace {

// The time for all questions to the store after the units are warm.
constexpr std::chrono::seconds kAsking{10};

std::string no_signing_key(const std::string& nothing) {
  return nothing +
         "this host has no signing key, so other hosts compile these units again; create one with 'kiln key generate "
         "-o FILE', set KILN_REMOTE_SIGNING_KEY=FILE and KILN_REMOTE_NAMESPACE=NAME, and run 'kiln trust add KEY "
         "--namespace NAME' on the hosts that read";
}

// Returns whether the store has a statement for the key in one of the namespaces.
Result<bool> has_entry(ObjectStore& store, const std::vector<std::string>& namespaces, const ArtifactKey& key,
                       const Deadline& deadline) {
  for (const std::string& name_space : namespaces) {
    const auto found = store.read(ObjectStore::Bucket::ActionCache, action_name(name_space, key),
                                  RemoteStore::kMaxActionBytes, deadline);
    if (!found) return found.error();
    if (*found) return true;
  }
  return false;
}

// Returns how many artifacts that were in the cache of this host the store does not have, neither as this host's nor in
// a namespace that it reads. Ends at the first failure of the store.
std::uint64_t missing_in_store(const Config& config, const WarmReport& report, const std::string& own) {
  const auto object_store = open_object_store(config);
  const Result<TrustPolicy> policy = configured_policy(config);
  if (!object_store || *object_store == nullptr || !policy) return 0;
  std::vector<std::string> namespaces =
      remote_namespaces(*policy, {own}, NamespaceScope().narrowed(config.trust_namespaces));
  if (std::find(namespaces.begin(), namespaces.end(), own) == namespaces.end()) namespaces.push_back(own);
  const Deadline deadline(kAsking);
  std::uint64_t missing = 0;
  for (const CompileOutcome& each : report.outcomes) {
    if (!each.answer || each.answer->origin != Origin::Disk) continue;
    const Result<bool> found = has_entry(**object_store, namespaces, each.answer->key, deadline);
    if (!found) break;
    if (!*found) ++missing;
  }
  return missing;
}

}  // namespace

void PublishingObserver::on_event(const Event& event) {
  if (event.kind == Event::Kind::Uploaded) ++sent_;
  // An upload without a key is a dependency set, which is no artifact.
  if (event.kind == Event::Kind::UploadDropped && !event.key.empty()) ++dropped_;
  {
    const MutexLock lock(mutex_);
    const bool failed = event.kind == Event::Kind::RemoteUnavailable;
    if (failed && event.origin == "remote" && server_failure_.empty()) server_failure_ = event.message;
    if (event.kind == Event::Kind::UploadDropped && first_drop_.empty()) first_drop_ = event.message;
    const bool is_problem =
        failed || event.kind == Event::Kind::BundleRejected || event.kind == Event::Kind::ConfigWarning;
    if (is_problem && std::find(problems_.begin(), problems_.end(), event.message) == problems_.end()) {
      problems_.push_back(event.message);
    }
  }
  next_(event);
}

std::string PublishingObserver::upload_failure() const {
  const MutexLock lock(mutex_);
  return server_failure_.empty() ? first_drop_ : server_failure_;
}

std::vector<std::string> PublishingObserver::problems() const {
  const MutexLock lock(mutex_);
  return problems_;
}

std::string publishing_problem(const Config& config, const WarmReport& report, const std::string& failure) {
  if (config.remote_url.empty() || config.disable) return {};
  const std::string nothing = "nothing was published to " + visible_url(config.remote_url) + ": ";
  const auto signer = make_signer(config);
  if (!signer) {
    const char* const step = "; create a key with 'kiln key generate -o FILE' and set KILN_REMOTE_SIGNING_KEY=FILE";
    return nothing + signer.error().message + (names_next_step(signer.error().message) ? "" : step);
  }
  if (*signer == nullptr) {
    return report.from_origin(Origin::Compiled) > 0 ? no_signing_key(nothing) : std::string();
  }
  if (report.dropped > 0) {
    // The event names the server, too.
    const std::string server = visible_url(config.remote_url) + ": ";
    return std::to_string(report.dropped) + " of " + std::to_string(report.dropped + report.published) +
           " artifacts were not published to " + server +
           (failure.starts_with(server) ? failure.substr(server.size()) : failure) +
           "; check remote.url (KILN_REMOTE) with 'kiln doctor', the permissions of the store and the log of its "
           "server";
  }
  const std::uint64_t missing = missing_in_store(config, report, (*signer)->name_space());
  if (missing == 0) return {};
  return std::to_string(missing) + " artifacts are in the cache of this host but not in " +
         visible_url(config.remote_url) + " as " + (*signer)->name_space() +
         ": only new compiles are published; compile them again with "
         "'KILN_CACHE_DIR=$(mktemp -d) kiln warm --from " +
         report.from + "'";
}

}  // namespace kiln::cli
