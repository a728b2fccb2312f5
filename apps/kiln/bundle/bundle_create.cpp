// SPDX-License-Identifier: Apache-2.0
// kiln bundle create: compiles every unit of a kiln.toml for every architecture into one file.
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "apps/kiln/bundle/bundle_files.hpp"
#include "apps/kiln/bundle/render_bundle_json.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/compile/batch.hpp"
#include "apps/kiln/compile/profile_match.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/output.hpp"
#include "base/error.hpp"
#include "core/dependency_set.hpp"
#include "session/access.hpp"

namespace kiln::cli {
namespace {

Config building_config(const EventEmitter& emitter, bool signs) {
  Config config = Config::load({}, emitter);
  // Build for exactly the given target with the local compiler. Do not accept compatible artifacts from bundles.
  config.bundles_exact = true;
  if (!signs) return config;
  // A signature guarantees the bytes. Therefore the artifacts are compiled now or come from a bundle with a valid
  // signature. They never come from a cache, whose checksums need no key and can be forged, from the remote store or
  // from an unsigned bundle (docs/how-to/sign-and-trust.md). Without a cache, precompiled headers and cached file
  // digests are not used either.
  config.cache_path.clear();
  config.remote_url.clear();
  config.trust_unsigned = false;
  return config;
}

Result<ProfileMatch> jobs_for(const Arguments& arguments, const Manifest& manifest, Components& components,
                              Console& console) {
  if (arguments.profile.empty()) {
    Result<std::vector<Job>> jobs = jobs_of(arguments, manifest);
    if (!jobs) return jobs.error();
    return ProfileMatch{std::move(*jobs), {}};
  }
  const Result<Profile> profile = load_profile(arguments.profile, console);
  if (!profile) return profile.error();
  const Result<std::vector<Target>> instead = given_targets(arguments);
  if (!instead) return instead.error();
  return match_profile(*profile, manifest, *instead, components);
}

Status add_members(BundleWriter& writer, const std::vector<Job>& jobs, const std::vector<CompileOutcome>& outcomes,
                   Components& components) {
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Job& job = jobs[i];
    const ResolvedArtifact& answer = *outcomes[i].answer;
    const std::string what = job.file + " for " + job.target.name();
    if (!answer.uncacheable_reason.empty()) {
      return make_error(Code::CompileFailed, what + " cannot be added to a bundle: " + answer.uncacheable_reason);
    }
    const Result<Recipe> recipe = components.recipe(job.unit, job.target, {});
    if (!recipe) return recipe.error();
    const CompilerIdentity& compiler = recipe->compiler;
    BundleMember member{job.unit.kind(), job.unit.key(), answer.artifact,  answer.request,
                        answer.key,      compiler.name,  compiler.version, compiler.digest};
    member.artifact.metadata.unit = job.unit.label();
    if (const Result<bool> added = writer.add(std::move(member)); !added) {
      return make_error(added.error().code, what + ": " + added.error().message);
    }
  }
  return {};
}

void print_table(const std::vector<Job>& jobs, const std::vector<CompileOutcome>& outcomes, Console& console) {
  std::vector<std::vector<std::string>> rows = {{"UNIT", "ARCHITECTURE", "SIZE", "MS", "ORIGIN"}};
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const ResolvedArtifact& answer = *outcomes[i].answer;
    char ms[32];
    std::snprintf(ms, sizeof ms, "%.1f", answer.ms);
    rows.push_back({jobs[i].unit.label(), answer.artifact.target.name(), format_bytes(answer.artifact.bytes.size()), ms,
                    to_string(answer.origin)});
  }
  console.print(table_text(rows));
}

std::string escaped(std::string_view path) {
  std::string out;
  for (const char c : path) {
    if (c == ' ' || c == '#') out += '\\';
    if (c == '$') out += '$';
    out += c;
  }
  return out;
}

std::string absolute(const std::string& path) {
  std::error_code unknown;
  const std::filesystem::path whole = std::filesystem::absolute(path, unknown);
  return unknown ? path : whole.lexically_normal().string();
}

void add_dependency_set(std::set<std::string>& files, const DependencySet& dependency_set, const PathRoots& places) {
  for (const DependencySet::Dependency& item : dependency_set.items) {
    const bool sealed = item.state == DependencySet::State::Sentinel && item.root < places.roots.size();
    if (sealed) files.insert(absolute(places.roots[item.root].sentinel));
    if (item.state == DependencySet::State::Read) files.insert(absolute(places.path_of(item.root, item.name)));
  }
}

// Returns the text of a dependency file for Make and Ninja: the kiln.toml, the sources and every file that the compiles
// read. Paths are absolute.
std::string depfile_text(const Arguments& arguments, const Manifest& manifest, const std::vector<Job>& jobs,
                         const std::vector<CompileOutcome>& outcomes) {
  std::set<std::string> files = {absolute(arguments.manifest)};
  for (const Manifest::UnitEntry& member : manifest.members) {
    if (!member.spec) files.insert(absolute(member.source.file));
  }
  const std::string here = absolute(".");
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Unit& unit = jobs[i].unit;
    const Result<ResolvedArtifact>& answer = outcomes[i].answer;
    if (answer && answer->artifact.dependency_set != nullptr) {
      add_dependency_set(files, *answer->artifact.dependency_set, {here, unit.include_roots()});
    }
  }
  std::string text = escaped(absolute(arguments.output)) + ':';
  for (const std::string& file : files) text += " \\\n  " + escaped(file);
  return text + '\n';
}

// The inputs of the command that are checked before anything is compiled.
struct Plan {
  Manifest manifest;
  BundleIdentity speaker;
};
Result<Plan> plan_of(const Arguments& arguments) {
  Result<Manifest> manifest = read_manifest(arguments.manifest);
  if (!manifest) return manifest.error();
  if (manifest->members.empty()) {
    return make_error(Code::InvalidArgument,
                      arguments.manifest + " lists no units; add one with [[unit]], [[family]] or [[cccl]]");
  }
  if (Status good = check_output(arguments.output); !good) return good.error();
  Result<BundleIdentity> speaker = BundleIdentity::of(arguments, manifest->name_space, manifest->epoch);
  if (!speaker) return speaker.error();
  return Plan{std::move(*manifest), std::move(*speaker)};
}

}  // namespace

int bundle_create_command(const Arguments& arguments, Console& console) {
  if (arguments.manifest.empty() == arguments.external.empty()) {
    return report(make_error(Code::InvalidArgument,
                             "give a MANIFEST (a kiln.toml), or --external with the system whose "
                             "cache entries to pack, such as triton"),
                  console);
  }
  if (!arguments.external.empty()) return bundle_external_command(arguments, console);
  const Result<Plan> plan = plan_of(arguments);
  if (!plan) return report(plan.error(), console);
  SessionOptions options = session_options(arguments, console);
  Config config = building_config(EventEmitter(options.on_event), plan->speaker.key.has_value());
  Session session = detail::SessionAccess::open(std::move(options), std::move(config));
  Components& components = detail::SessionAccess::components(session);
  const Result<ProfileMatch> wanted = jobs_for(arguments, plan->manifest, components, console);
  if (!wanted) return report(wanted.error(), console);
  print_unmatched(wanted->unmatched, "not built", console);
  if (wanted->jobs.empty()) {
    console.error({Code::InvalidArgument, "no unit in " + arguments.profile + " matches a unit of " +
                                              arguments.manifest + "; nothing was written"});
    return kFailed;
  }
  const std::vector<CompileOutcome> outcomes = CompileBatch(wanted->jobs, session, console).run();
  if (const int failed = print_errors(outcomes, console); failed != kSuccess) {
    if (arguments.json) console.print(compile_json(outcomes));
    return failed;
  }
  std::optional<Progress> writing(std::in_place, console, ProgressMeter::Options{"writing the bundle", {}});
  BundleWriter writer(plan->speaker.options());
  if (Status added = add_members(writer, wanted->jobs, outcomes, components); !added)
    return report(added.error(), console);
  const Result<WrittenBundle> written = write_bundle(writer, plan->speaker, arguments.output);
  writing.reset();
  if (!written) return report(written.error(), console);
  if (!arguments.depfile.empty()) {
    const std::string read = depfile_text(arguments, plan->manifest, wanted->jobs, outcomes);
    if (Status reported = replace_file(arguments.depfile, read); !reported) return report(reported.error(), console);
  }
  if (arguments.json) {
    console.print(bundle_create_json(*written, wanted->jobs, outcomes, wanted->unmatched));
    return kSuccess;
  }
  print_table(wanted->jobs, outcomes, console);
  console.print(written->text());
  return kSuccess;
}

}  // namespace kiln::cli
