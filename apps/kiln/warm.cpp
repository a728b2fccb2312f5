// kiln warm: what a file lists, on this node.
#include <atomic>
#include <utility>

#include "apps/kiln/batch.hpp"
#include "apps/kiln/bundle_files.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/warm_report.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files.hpp"

namespace kiln::cli {
namespace {

// Nobody waits for a node that is being filled, so servers get the time that they take.
constexpr std::chrono::milliseconds kBudget = std::chrono::seconds(10);
constexpr std::chrono::seconds kPublishing = std::chrono::minutes(5);

Config warming_config(const Observer& observer) {
  Config config = Config::load({}, observer);
  config.remote_budget = std::max(config.remote_budget, kBudget);
  return config;
}

// What was sent to the remote store, and all that the console hears.
class Uploads {
 public:
  explicit Uploads(EventCallback next) : next_(std::move(next)) {}
  void hear(const Event& event) {
    if (event.kind == Event::Kind::Uploaded) ++sent_;
    if (event.kind == Event::Kind::UploadDropped) ++dropped_;
    next_(event);
  }
  std::uint64_t sent() const { return sent_; }
  std::uint64_t dropped() const { return dropped_; }

 private:
  const EventCallback next_;
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> dropped_{0};
};

// Takes from a profile what the bundles of the settings serve: for that neither a source nor a compiler is needed.
Status serve_from_bundles(Profile& profile, const Config& config, Console& console, WarmReport& report) {
  const Result<TrustPolicy> policy = configured_policy(config);
  if (!policy) return policy.error();
  for (const std::string& path : config.bundles) {
    const Result<OpenBundle> open = open_to_look(path, *policy);
    if (!open || !open->believed) {
      console.warn(open ? path + " is not used: " + open->believed.error().message : open.error().message);
      continue;
    }
    std::erase_if(profile.asked, [&](const Asked& asked) {
      Result<std::optional<Bundle::Pinned>> found = open->bundle->find(asked.key, asked.target);
      if (!found || !*found) return false;
      Bundle::Pinned& pinned = **found;
      report.outcomes.push_back({asked.unit,
                                 asked.target.name(),
                                 Answer{std::move(pinned.artifact), pinned.request, pinned.key, Origin::Bundle},
                                 {}});
      return true;
    });
  }
  return {};
}

// A profile has keys and no sources, so that whoever hands it over cannot make this host compile anything of his own.
Result<std::vector<Job>> profile_jobs(const Arguments& arguments, Toolbox& toolbox, Console& console,
                                      WarmReport& report) {
  Result<Profile> profile = load_profile(arguments.from, console);
  if (!profile) return profile.error();
  const Result<std::vector<Target>> instead = given_targets(arguments);
  if (!instead) return instead.error();
  const Config& config = toolbox.config();
  if (instead->empty() && !config.bundles_exact && !config.disable) {
    if (Status served = serve_from_bundles(*profile, config, console, report); !served) return served.error();
  }
  Manifest manifest;
  const std::string path = arguments.manifest.empty() ? "kiln.toml" : arguments.manifest;
  const bool there = !arguments.manifest.empty() || exists(path);
  if (there && !profile->asked.empty()) {
    Result<Manifest> read = read_manifest(path);
    if (!read) return read.error();
    manifest = std::move(*read);
  }
  Result<ProfileMatch> match = match_profile(*profile, manifest, *instead, toolbox);
  if (!match) return match.error();
  if (!there && !match->unmatched.empty()) {
    console.warn("a profile has no sources, and there is no kiln.toml here: say which has them with --manifest");
  }
  report.unmatched = std::move(match->unmatched);
  return std::move(match->jobs);
}

Result<std::vector<Job>> manifest_jobs(const Arguments& arguments) {
  if (!arguments.manifest.empty()) {
    return failure(Code::InvalidArgument,
                   "--manifest goes with a profile; " + arguments.from + " is a manifest itself");
  }
  const Result<Manifest> manifest = read_manifest(arguments.from);
  if (!manifest) return manifest.error();
  if (manifest->members.empty()) {
    return failure(Code::InvalidArgument, arguments.from + " lists no units; [[unit]] or [[cccl]] adds one");
  }
  return jobs_of(arguments, *manifest);
}

int warm_units(const Arguments& arguments, bool profile, Console& console) {
  const auto start = system_clock().steady();
  Uploads uploads(console.listener());
  WarmReport result{arguments.from, profile ? "profile" : "manifest", {}, {}};
  {
    const Observer observer([&](const Event& event) { uploads.hear(event); });
    Toolbox toolbox(warming_config(observer), observer);
    const Result<std::vector<Job>> jobs =
        profile ? profile_jobs(arguments, toolbox, console, result) : manifest_jobs(arguments);
    if (!jobs) return report(jobs.error(), console);
    print_unmatched(result.unmatched, "unknown here", console);
    for (CompileOutcome& each : Batch(*jobs, toolbox, console).run(arguments.jobs)) {
      result.outcomes.push_back(std::move(each));
    }
    const Progress publishing(console, {"publishing", {}});
    (void)toolbox.drain(kPublishing);  // what is left then is dropped, and counted as such
  }
  result.published = uploads.sent();
  result.dropped = uploads.dropped();
  result.seconds = milliseconds_since(system_clock(), start) / 1e3;
  const int failed = print_errors(result.outcomes, console);
  console.print(arguments.json ? warm_json(result) : result.text());
  if (failed != kDone) return failed;
  return result.outcomes.empty() && !result.unmatched.empty() ? kFailed : kDone;
}

}  // namespace

int warm_command(const Arguments& arguments, Console& console) {
  if (arguments.from.ends_with(".jsonl")) return warm_units(arguments, true, console);
  if (arguments.from.ends_with(".toml")) return warm_units(arguments, false, console);
  return warm_bundle(arguments, console);
}

}  // namespace kiln::cli
