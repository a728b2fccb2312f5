// kiln bundle create: every unit of a kiln.toml for every architecture, in one file.
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "apps/kiln/batch.hpp"
#include "apps/kiln/bundle_files.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output.hpp"
#include "apps/kiln/profile_match.hpp"
#include "apps/kiln/render_bundle_json.hpp"
#include "base/error.hpp"
#include "core/closure.hpp"

namespace kiln::cli {
namespace {

Config building_config(const Observer& observer, bool signs) {
  Config config = Config::load({}, observer);
  // What is built is for the target that was named and by the compiler that is here, not whatever would do.
  config.bundles_exact = true;
  if (!signs) return config;
  // Who signs vouches for the bytes. So they come from this machine's own workers, of which this user's cache is the
  // memory, or from somebody whose signature held: not from the caches of others, what other hosts share, or what
  // nobody signed (docs/trust.md).
  if (config.cache_path.size() > 1) config.cache_path.resize(1);
  config.cache_trusted_users.clear();
  config.remote.clear();
  config.trust_unsigned = false;
  return config;
}

Result<ProfileMatch> jobs_for(const Arguments& arguments, const Manifest& manifest, Toolbox& toolbox,
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
  return match_profile(*profile, manifest, *instead, toolbox);
}

Status add_members(BundleWriter& writer, const std::vector<Job>& jobs, const std::vector<CompileOutcome>& outcomes,
                   Toolbox& toolbox) {
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Job& job = jobs[i];
    const Answer& answer = *outcomes[i].answer;
    const std::string what = job.file + " for " + job.target.name();
    if (!answer.not_cacheable.empty()) {
      return failure(Code::CompileFailed, what + " cannot be in a bundle: " + answer.not_cacheable);
    }
    const Result<Recipe> recipe = toolbox.recipe(job.unit, job.target);
    if (!recipe) return recipe.error();
    const CompilerIdentity& compiler = recipe->compiler;
    BundleMember member{job.unit.kind(), job.unit.key(), answer.artifact,  answer.request,
                        answer.key,      compiler.name,  compiler.version, compiler.digest};
    member.artifact.about.unit = job.unit.name();
    if (const Result<bool> added = writer.add(std::move(member)); !added) {
      return failure(added.error().code, what + ": " + added.error().message);
    }
  }
  return {};
}

void print_table(const std::vector<Job>& jobs, const std::vector<CompileOutcome>& outcomes, Console& console) {
  std::vector<std::vector<std::string>> rows = {{"UNIT", "ARCHITECTURE", "SIZE", "MS", "ORIGIN"}};
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Answer& answer = *outcomes[i].answer;
    char ms[32];
    std::snprintf(ms, sizeof ms, "%.1f", answer.ms);
    rows.push_back({jobs[i].unit.name(), answer.artifact.target.name(), size_text(answer.artifact.bytes.size()), ms,
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

void add_closure(std::set<std::string>& files, const Closure& closure, const Places& places) {
  for (const Closure::Item& item : closure.items) {
    const bool sealed = item.state == Closure::State::Sealed && item.root < places.roots.size();
    if (sealed) files.insert(absolute(places.roots[item.root].seal));
    if (item.state == Closure::State::Read) files.insert(absolute(places.path_of(item.root, item.name)));
  }
}

// What Make and Ninja read to know when a file has to be built again: the kiln.toml, the sources, and every file that
// their compiles read. Paths are absolute.
std::string depfile_text(const std::string& output, const std::string& manifest, const std::vector<Job>& jobs,
                         const std::vector<CompileOutcome>& outcomes) {
  std::set<std::string> files = {absolute(manifest)};
  const std::string here = absolute(".");
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Unit& unit = jobs[i].unit;
    if (unit.kind() == "cuda" || unit.kind() == "opencl") files.insert(absolute(jobs[i].file));
    const Result<Answer>& answer = outcomes[i].answer;
    if (answer && answer->artifact.closure != nullptr) {
      add_closure(files, *answer->artifact.closure, {here, unit.include_roots()});
    }
  }
  std::string text = escaped(absolute(output)) + ':';
  for (const std::string& file : files) text += " \\\n  " + escaped(file);
  return text + '\n';
}

// All that can be said without compiling anything.
struct Plan {
  Manifest manifest;
  Speaker speaker;
};
Result<Plan> plan_of(const Arguments& arguments) {
  Result<Manifest> manifest = read_manifest(arguments.manifest);
  if (!manifest) return manifest.error();
  if (manifest->members.empty()) {
    return failure(Code::InvalidArgument, arguments.manifest + " lists no units; [[unit]] or [[cccl]] adds one");
  }
  if (Status good = check_output(arguments.output); !good) return good.error();
  Result<Speaker> speaker = Speaker::of(arguments, manifest->name_space, manifest->epoch);
  if (!speaker) return speaker.error();
  return Plan{std::move(*manifest), std::move(*speaker)};
}

}  // namespace

int bundle_create_command(const Arguments& arguments, Console& console) {
  if (arguments.manifest.empty() == arguments.foreign.empty()) {
    return report(failure(Code::InvalidArgument,
                          "give a MANIFEST (a kiln.toml), or --foreign with the system whose "
                          "entries of the cache are wanted, such as triton"),
                  console);
  }
  if (!arguments.foreign.empty()) return bundle_foreign_command(arguments, console);
  const Result<Plan> plan = plan_of(arguments);
  if (!plan) return report(plan.error(), console);
  const Observer observer(console.listener());
  Toolbox toolbox(building_config(observer, plan->speaker.key.has_value()), observer);
  const Result<ProfileMatch> wanted = jobs_for(arguments, plan->manifest, toolbox, console);
  if (!wanted) return report(wanted.error(), console);
  print_unmatched(wanted->unmatched, "not built", console);
  if (wanted->jobs.empty()) {
    console.error({Code::InvalidArgument, "nothing that " + arguments.profile + " asks for is a unit of " +
                                              arguments.manifest + "; nothing was written"});
    return kFailed;
  }
  const std::vector<CompileOutcome> outcomes = Batch(wanted->jobs, toolbox, console).run(arguments.jobs);
  if (const int failed = print_errors(outcomes, console); failed != kDone) {
    if (arguments.json) console.print(compile_json(outcomes));
    return failed;
  }
  std::optional<Progress> writing(std::in_place, console, ProgressMeter::Options{"writing the bundle", {}});
  BundleWriter writer(plan->speaker.options());
  if (Status added = add_members(writer, wanted->jobs, outcomes, toolbox); !added)
    return report(added.error(), console);
  const Result<WrittenBundle> written = write_bundle(writer, plan->speaker, arguments.output);
  writing.reset();
  if (!written) return report(written.error(), console);
  if (!arguments.depfile.empty()) {
    const std::string read = depfile_text(arguments.output, arguments.manifest, wanted->jobs, outcomes);
    if (Status told = replace_file(arguments.depfile, read); !told) return report(told.error(), console);
  }
  if (arguments.json) {
    console.print(bundle_create_json(*written, wanted->jobs, outcomes, wanted->unmatched));
    return kDone;
  }
  print_table(wanted->jobs, outcomes, console);
  console.print(written->text());
  return kDone;
}

}  // namespace kiln::cli
