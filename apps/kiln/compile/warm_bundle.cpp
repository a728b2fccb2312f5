// SPDX-License-Identifier: Apache-2.0
// kiln warm --from app.kiln: adds the artifacts of a bundle, by key, to the cache of fetched entries.
#include <algorithm>

#include "apps/kiln/bundle/bundle_files.hpp"
#include "apps/kiln/compile/batch.hpp"
#include "apps/kiln/compile/unit_arguments.hpp"
#include "apps/kiln/compile/warm_report.hpp"
#include "apps/kiln/exit_code.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "bundle/epoch_memory.hpp"
#include "core/compatibility.hpp"
#include "session/remote_factory.hpp"

namespace kiln::cli {
namespace {

Result<std::unique_ptr<DiskStore>> open_fetched(const Config& config, const TrustPolicy& policy,
                                                const NamespaceScope& scope, const EventEmitter& emitter) {
  DiskStore::Options options;
  options.root = fetched_root(config.cache_path.front(), policy, scope);
  options.max_bytes = config.cache_max_bytes;
  return DiskStore::open(std::move(options), emitter);
}

bool wanted(const Target& made, const std::vector<Target>& targets) {
  return targets.empty() || std::any_of(targets.begin(), targets.end(), [&](const Target& target) {
           return compatibility_rank(made, target).has_value();
         });
}

Status keep(DiskStore& store, Bundle& bundle, const BundleMember& member, WarmReport& result) {
  const Result<std::optional<Hit>> before = store.get(member.key, {});
  if (!before) return before.error();
  if (Status put = *before ? Status() : store.put(member.key, member.artifact, {}); !put) return put;
  ++(*before ? result.already_cached : result.stored);
  // Readers look up the key through the dependency set.
  const Result<std::vector<DependencySet>> dependency_sets =
      bundle.dependency_sets(member.request, Store::kMaxDependencySets, {});
  if (!dependency_sets) return dependency_sets.error();
  for (const DependencySet& dependency_set : *dependency_sets) {
    if (Status added = store.add_dependency_set(member.request, dependency_set, {}); !added) return added;
  }
  return {};
}

// Rejects, as a session would, a namespace that is not allowed and an epoch older than the newest one seen.
Status check_origin(const BundleHeader& header, const Config& config, const NamespaceScope& scope,
                    const EventEmitter& emitter) {
  if (!scope.admits(header.name_space)) {
    return make_error(Code::Denied, "its namespace '" + header.name_space +
                                        "' is not allowed: trust.namespaces allows " + scope.text() + " only");
  }
  if (!config.trust_remember_epochs) return {};
  EpochMemory epochs(config.cache_path.front() + "/v1/epochs", emitter);
  return epochs.admit(header.name_space, header.epoch, header.signature.has_value());
}

// Adds the artifacts to the cache. Rejects an untrusted bundle, because entries in this cache count as trusted.
Status unpack(const Arguments& arguments, const Config& config, const EventEmitter& emitter, Console& console,
              WarmReport& result) {
  const Result<std::vector<Target>> targets = given_targets(arguments);
  if (!targets) return targets.error();
  const Result<TrustPolicy> policy = configured_policy(config);
  if (!policy) return policy.error();
  const Result<OpenBundle> open = open_for_inspection(arguments.from, *policy);
  if (!open) return open.error();
  if (!open->trust_status) return open->trust_status;
  const NamespaceScope scope = NamespaceScope().narrowed(config.trust_namespaces);
  if (Status usable = check_origin(open->bundle->header(), config, scope, emitter); !usable) return usable;
  const Result<std::unique_ptr<DiskStore>> store = open_fetched(config, *policy, scope, emitter);
  if (!store) return store.error();
  const DeviceLimit limit = DeviceLimit::of(arguments, config);
  const Result<std::vector<BundleMember>> members = [&] {
    Progress reading(console, {"reading", "artifacts"});
    return open->bundle->members(reading.advance(), [&](const Target& target) {
      const bool admitted = limit.admits(target);
      result.not_for_devices += admitted ? 0 : 1;
      return admitted && wanted(target, *targets);
    });
  }();
  if (!members) return members.error();
  Progress progress(console, {"storing", "artifacts", members->size()});
  for (std::size_t i = 0; i < members->size(); ++i) {
    const BundleMember& member = (*members)[i];
    progress.set(i, members->size());
    progress.at(member.artifact.metadata.unit);
    if (Status kept = keep(**store, *open->bundle, member, result); !kept) return kept;
  }
  if (std::string problem = result.device_problem(limit.text()); !problem.empty()) {
    console.warn(problem);
    result.problems.push_back(std::move(problem));
  }
  return {};
}

}  // namespace

int warm_bundle(const Arguments& arguments, Console& console) {
  const auto start = system_clock().steady();
  const EventEmitter emitter(console.listener());
  const Config config = Config::load({}, emitter);
  WarmReport result{.from = arguments.from, .kind = "bundle"};
  if (config.remote_url.empty() || config.disable || config.cache_path.empty()) {
    const std::string reason = config.remote_url.empty()
                                   ? "no remote store is configured, and programs use fetched entries "
                                     "only with one"
                                   : "caching is disabled";
    return report(
        {Code::InvalidArgument, reason + "; set KILN_BUNDLES=" + arguments.from + " to use the bundle directly"},
        console);
  }
  if (Status done = unpack(arguments, config, emitter, console, result); !done) return report(done.error(), console);
  result.seconds = milliseconds_since(system_clock(), start) / 1e3;
  if (result.stored + result.already_cached + result.not_for_devices == 0) {
    return report(
        {Code::Unavailable, arguments.from + " has no artifacts for these architectures; 'kiln bundle ls' lists "
                                             "its architectures"},
        console);
  }
  console.print(arguments.json ? warm_json(result) : result.text());
  return kSuccess;
}

}  // namespace kiln::cli
