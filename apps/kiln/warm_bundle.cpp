// kiln warm --from app.kiln: a bundle's artifacts, by key, beside what was fetched from the remote store.
#include <algorithm>

#include "apps/kiln/batch.hpp"
#include "apps/kiln/bundle_files.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/unit_arguments.hpp"
#include "apps/kiln/warm_report.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "core/fit.hpp"
#include "session/remote_parts.hpp"

namespace kiln::cli {
namespace {

Result<std::unique_ptr<DiskStore>> open_fetched(const Config& config, const TrustPolicy& policy,
                                                const Observer& observer) {
  DiskStore::Options options;
  options.root = fetched_root(config.cache_path.front(), policy);
  options.size_bound = config.cache_max_bytes;
  return DiskStore::open(std::move(options), observer);
}

bool wanted(const Target& made, const std::vector<Target>& targets) {
  return targets.empty() || std::any_of(targets.begin(), targets.end(),
                                        [&](const Target& target) { return fit(made, target).has_value(); });
}

Status keep(DiskStore& store, Bundle& bundle, const BundleMember& member, WarmReport& result) {
  const Result<std::optional<Hit>> before = store.get(member.key);
  if (!before) return before.error();
  if (Status put = *before ? Status() : store.put(member.key, member.artifact); !put) return put;
  ++(*before ? result.there : result.kept);
  // Readers find the key by the closure.
  const Result<std::vector<Closure>> closures = bundle.closures(member.request);
  if (!closures) return closures.error();
  for (const Closure& closure : *closures) {
    if (Status added = store.add_closure(member.request, closure); !added) return added;
  }
  return {};
}

// A bundle that is not believed is not unpacked: its artifacts would be believed from then on.
Status unpack(const Arguments& arguments, const Config& config, const Observer& observer, Console& console,
              WarmReport& result) {
  const Result<std::vector<Target>> targets = given_targets(arguments);
  if (!targets) return targets.error();
  const Result<TrustPolicy> policy = configured_policy(config);
  if (!policy) return policy.error();
  const Result<OpenBundle> open = open_to_look(arguments.from, *policy);
  if (!open) return open.error();
  if (!open->believed) return open->believed;
  const Result<std::unique_ptr<DiskStore>> store = open_fetched(config, *policy, observer);
  if (!store) return store.error();
  const Result<std::vector<BundleMember>> members = [&] {
    Progress reading(console, {"reading", "artifacts"});
    return open->bundle->members(reading.advance());
  }();
  if (!members) return members.error();
  Progress progress(console, {"keeping", "artifacts", members->size()});
  for (std::size_t i = 0; i < members->size(); ++i) {
    const BundleMember& member = (*members)[i];
    progress.set(i, members->size());
    if (!wanted(member.artifact.target, *targets)) continue;
    progress.at(member.artifact.about.unit);
    if (Status kept = keep(**store, *open->bundle, member, result); !kept) return kept;
  }
  return {};
}

}  // namespace

int warm_bundle(const Arguments& arguments, Console& console) {
  const auto start = system_clock().steady();
  const Observer observer(console.listener());
  const Config config = Config::load({}, observer);
  WarmReport result{.from = arguments.from, .kind = "bundle"};
  if (config.remote.empty() || config.disable || config.cache_path.empty()) {
    const std::string why = config.remote.empty() ? "no remote store is configured, and programs look for what was "
                                                    "fetched only where one is"
                                                  : "caching is switched off";
    return report({Code::InvalidArgument, why + "; KILN_BUNDLES=" + arguments.from + " lets them use it as it is"},
                  console);
  }
  if (Status done = unpack(arguments, config, observer, console, result); !done) return report(done.error(), console);
  result.seconds = milliseconds_since(system_clock(), start) / 1e3;
  if (result.kept + result.there == 0) {
    return report({Code::Unavailable, arguments.from + " has nothing for these architectures; 'kiln bundle ls' says "
                                                       "for which it has"},
                  console);
  }
  console.print(arguments.json ? warm_json(result) : result.text());
  return kDone;
}

}  // namespace kiln::cli
