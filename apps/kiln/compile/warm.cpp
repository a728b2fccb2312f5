// SPDX-License-Identifier: Apache-2.0
// kiln warm: fills the caches of this node with the units that a file lists.
#include <array>
#include <utility>

#include "apps/kiln/bundle/bundle_files.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/compile/batch.hpp"
#include "apps/kiln/compile/publishing.hpp"
#include "apps/kiln/compile/warm_report.hpp"
#include "apps/kiln/exit_code.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"
#include "session/access.hpp"

namespace kiln::cli {
namespace {

// The budget of remote servers per unit. No program waits for this command, so the budget is long.
constexpr std::chrono::milliseconds kBudget = std::chrono::seconds(10);
constexpr std::chrono::seconds kPublishing = std::chrono::minutes(5);

Config warming_config(const EventEmitter& emitter) {
  Config config = Config::load({}, emitter);
  config.remote_budget = std::max(config.remote_budget, kBudget);
  return config;
}

// Removes from the profile the requests that the configured bundles serve. They need neither a source nor a compiler.
Status serve_from_bundles(Profile& profile, const Config& config, Console& console, WarmReport& report) {
  const Result<TrustPolicy> policy = configured_policy(config);
  if (!policy) return policy.error();
  for (const std::string& path : config.bundles) {
    const Result<OpenBundle> open = open_for_inspection(path, *policy);
    if (!open || !open->trust_status) {
      console.warn(open ? path + " is not used: " + open->trust_status.error().message : open.error().message);
      continue;
    }
    std::erase_if(profile.entries, [&](const ProfileEntry& asked) {
      Result<std::optional<Bundle::Match>> found = open->bundle->find(asked.key, asked.target);
      if (!found || !*found) return false;
      Bundle::Match& match = **found;
      report.outcomes.push_back(
          {asked.unit,
           asked.target.name(),
           ResolvedArtifact{std::move(match.artifact), match.request, match.key, Origin::Bundle, 0, {}},
           {}});
      return true;
    });
  }
  return {};
}

// Returns the jobs for a profile. A profile has keys but no sources, so that an untrusted profile cannot make this host
// compile arbitrary code.
Result<std::vector<Job>> profile_jobs(const Arguments& arguments, const DeviceLimit& limit, Components& components,
                                      Console& console, WarmReport& report) {
  Result<Profile> profile = load_profile(arguments.from, console);
  if (!profile) return profile.error();
  report.not_for_devices =
      std::erase_if(profile->entries, [&](const ProfileEntry& asked) { return !limit.admits(asked.target); });
  const Result<std::vector<Target>> instead = given_targets(arguments);
  if (!instead) return instead.error();
  const Config& config = components.config();
  if (instead->empty() && !config.bundles_exact && !config.disable) {
    if (Status served = serve_from_bundles(*profile, config, console, report); !served) return served.error();
  }
  Manifest manifest;
  const std::string path = arguments.manifest.empty() ? "kiln.toml" : arguments.manifest;
  const bool there = !arguments.manifest.empty() || exists(path);
  if (there && !profile->entries.empty()) {
    Result<Manifest> read = read_manifest(path);
    if (!read) return read.error();
    manifest = std::move(*read);
  }
  Result<ProfileMatch> match = match_profile(*profile, manifest, *instead, components);
  if (!match) return match.error();
  if (!there && !match->unmatched.empty()) {
    console.warn("a profile has no sources, and this directory has no kiln.toml: give one with --manifest");
  }
  report.unmatched = std::move(match->unmatched);
  return std::move(match->jobs);
}

Result<std::vector<Job>> manifest_jobs(const Arguments& arguments, const DeviceLimit& limit, WarmReport& report) {
  if (!arguments.manifest.empty()) {
    return make_error(Code::InvalidArgument, "--manifest requires a profile; " + arguments.from + " is a manifest");
  }
  const Result<Manifest> manifest = read_manifest(arguments.from);
  if (!manifest) return manifest.error();
  if (manifest->members.empty()) {
    return make_error(Code::InvalidArgument, arguments.from + " lists no units; add one with [[unit]] or [[cccl]]");
  }
  Arguments chosen = arguments;
  // Nothing is named: the devices of this host select.
  if (manifest->architectures.empty() && !limit.text().empty()) chosen.architectures = {"native"};
  Result<std::vector<Job>> jobs = jobs_of(chosen, *manifest);
  if (jobs) report.not_for_devices = std::erase_if(*jobs, [&](const Job& job) { return !limit.admits(job.target); });
  return jobs;
}

int warm_units(const Arguments& arguments, bool profile, Console& console) {
  const auto start = system_clock().steady();
  PublishingObserver uploads(console.listener());
  WarmReport result{arguments.from, profile ? "profile" : "manifest", {}, {}};
  Config remote;
  std::string devices;
  {
    SessionOptions options = session_options(arguments, console);
    options.on_event = [&](const Event& event) { uploads.on_event(event); };
    Config config = warming_config(EventEmitter(options.on_event));
    remote = config;
    Session session = detail::SessionAccess::open(std::move(options), std::move(config));
    Components& components = detail::SessionAccess::components(session);
    const DeviceLimit limit = DeviceLimit::of(arguments, remote);
    const Result<std::vector<Job>> jobs =
        profile ? profile_jobs(arguments, limit, components, console, result) : manifest_jobs(arguments, limit, result);
    if (!jobs) return report(jobs.error(), console);
    devices = limit.text();
    print_unmatched(result.unmatched, "not in the manifest", console);
    const FinishedJob print = arguments.json ? FinishedJob() : print_finished(*jobs, console);
    for (CompileOutcome& each : CompileBatch(*jobs, session, console).run(print)) {
      result.outcomes.push_back(std::move(each));
    }
    const Progress publishing(console, {"publishing", {}});
    (void)session.wait_for_uploads(kPublishing);  // uploads that are still pending are dropped and counted
  }
  result.seconds = milliseconds_since(system_clock(), start) / 1e3;
  result.published = uploads.sent();
  result.dropped = uploads.dropped();
  result.problems = uploads.problems();
  for (std::string& problem :
       std::array{publishing_problem(remote, result, uploads.upload_failure()), result.device_problem(devices)}) {
    if (problem.empty()) continue;
    console.warn(problem);
    result.problems.push_back(std::move(problem));
  }
  const int failed = print_errors(result.outcomes, console);
  console.print(arguments.json ? warm_json(result) : result.text());
  if (failed != kSuccess) return failed;
  return result.outcomes.empty() && !result.unmatched.empty() ? kFailed : kSuccess;
}

}  // namespace

int warm_command(const Arguments& arguments, Console& console) {
  if (arguments.from.ends_with(".jsonl")) return warm_units(arguments, true, console);
  if (arguments.from.ends_with(".toml")) return warm_units(arguments, false, console);
  return warm_bundle(arguments, console);
}

}  // namespace kiln::cli
