// SPDX-License-Identifier: Apache-2.0
// kiln bundle create --external: packs the entries of external systems in this user's cache into one file.
#include "apps/kiln/bundle/bundle_files.hpp"
#include "apps/kiln/bundle/render_bundle_json.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/output.hpp"
#include "base/error.hpp"
#include "cache/disk_store.hpp"

namespace kiln::cli {
namespace {

// Opens this user's cache only, whether the bundle will be signed or not. Artifacts from other sources are not packed.
Result<std::unique_ptr<DiskStore>> own_cache(const EventEmitter& emitter) {
  const Config config = Config::load({}, emitter);
  if (config.cache_path.empty())
    return make_error(Code::Unavailable, "no cache is configured (cache.dir, KILN_CACHE_DIR)");
  DiskStore::Options options;
  options.root = config.cache_path.front();
  options.read_only = true;
  return DiskStore::open(std::move(options), emitter);
}

BundleMember member_of(const ArtifactKey& key, Artifact artifact) {
  BundleMember member;
  member.kind = to_string(Form::External);
  member.compiler = artifact.metadata.compiler;
  member.artifact = std::move(artifact);
  member.key = key;
  member.unit = {key.digest};  // external entries have no kiln unit; the key keeps them distinct
  return member;
}

/// Adds the cache entries of a system to the bundle and returns their number.
Result<std::size_t> add_entries(BundleWriter& writer, DiskStore& cache, const std::string& system,
                                std::vector<std::vector<std::string>>& rows) {
  const auto listed = cache.list_entries();
  if (!listed) return listed.error();
  std::size_t count = 0;
  for (const DiskStore::EntryInfo& entry : *listed) {
    if (entry.target != Target::external(system)) continue;
    auto hit = cache.get(entry.key, {});
    if (!hit) return hit.error();
    if (!*hit) continue;  // the entry was corrupt; the cache has emitted an event
    rows.push_back({printable(entry.unit), system, format_bytes(entry.payload), time_text(entry.cost_ms)});
    if (const auto added = writer.add(member_of(entry.key, std::move((*hit)->artifact))); !added) return added.error();
    ++count;
  }
  return count;
}

}  // namespace

int bundle_external_command(const Arguments& arguments, Console& console) {
  if (Status good = check_output(arguments.output); !good) return report(good.error(), console);
  const Result<BundleIdentity> speaker = BundleIdentity::of(arguments, "local", 0);
  if (!speaker) return report(speaker.error(), console);
  const auto cache = own_cache(EventEmitter(console.listener()));
  if (!cache) return report(cache.error(), console);
  BundleWriter writer(speaker->options());
  std::vector<std::vector<std::string>> rows = {{"NAME", "SYSTEM", "SIZE", "BUILT IN"}};
  for (const std::string& system : arguments.external) {
    const Result<std::size_t> added = add_entries(writer, **cache, system, rows);
    if (!added) return report(added.error(), console);
    if (*added != 0) continue;
    return report(make_error(Code::Io, "the cache " + (*cache)->root() + " has no entries of '" + system +
                                           "'; run a program that compiles with it, then repeat this command "
                                           "('kiln cache ls' lists the entries)"),
                  console);
  }
  const Result<WrittenBundle> written = write_bundle(writer, *speaker, arguments.output);
  if (!written) return report(written.error(), console);
  if (arguments.json) {
    console.print(bundle_create_json(*written, {}, {}, {}));
    return kSuccess;
  }
  console.print(table_text(rows));
  console.print(written->text());
  return kSuccess;
}

}  // namespace kiln::cli
