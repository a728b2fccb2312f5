// kiln bundle create --foreign: what other systems compiled and this user's cache has, in one file.
#include "apps/kiln/bundle_files.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output.hpp"
#include "apps/kiln/render_bundle_json.hpp"
#include "base/error.hpp"
#include "store/disk_store.hpp"

namespace kiln::cli {
namespace {

// Of this user's own cache alone, signed or not: what others gave him is theirs to hand on.
Result<std::unique_ptr<DiskStore>> own_cache(const Observer& observer) {
  const Config config = Config::load({}, observer);
  if (config.cache_path.empty()) return failure(Code::Unavailable, "there is no cache (cache.dir, KILN_CACHE_DIR)");
  DiskStore::Options options;
  options.root = config.cache_path.front();
  options.read_only = true;
  return DiskStore::open(std::move(options), observer);
}

BundleMember member_of(const Key& key, Artifact artifact) {
  BundleMember member;
  member.kind = to_string(Form::Foreign);
  member.compiler = artifact.about.compiler;
  member.artifact = std::move(artifact);
  member.key = key;
  member.unit = {key.digest};  // no unit of ours: two of them are never one
  return member;
}

/// Adds what the cache has of a system, and says how many that were.
Result<std::size_t> add_entries(BundleWriter& writer, DiskStore& cache, const std::string& system,
                                std::vector<std::vector<std::string>>& rows) {
  const auto listed = cache.list();
  if (!listed) return listed.error();
  std::size_t count = 0;
  for (const DiskStore::Listed& entry : *listed) {
    if (entry.target != Target::foreign(system)) continue;
    auto hit = cache.get(entry.key);
    if (!hit) return hit.error();
    if (!*hit) continue;  // it was damaged, and an event has said so
    rows.push_back({printable(entry.unit), system, size_text(entry.payload), time_text(entry.cost_ms)});
    if (const auto added = writer.add(member_of(entry.key, std::move((*hit)->artifact))); !added) return added.error();
    ++count;
  }
  return count;
}

}  // namespace

int bundle_foreign_command(const Arguments& arguments, Console& console) {
  if (Status good = check_output(arguments.output); !good) return report(good.error(), console);
  const Result<Speaker> speaker = Speaker::of(arguments, "local", 0);
  if (!speaker) return report(speaker.error(), console);
  const auto cache = own_cache(Observer(console.listener()));
  if (!cache) return report(cache.error(), console);
  BundleWriter writer(speaker->options());
  std::vector<std::vector<std::string>> rows = {{"NAME", "SYSTEM", "SIZE", "BUILT IN"}};
  for (const std::string& system : arguments.foreign) {
    const Result<std::size_t> added = add_entries(writer, **cache, system, rows);
    if (!added) return report(added.error(), console);
    if (*added != 0) continue;
    return report(failure(Code::Io, "the cache " + (*cache)->root() + " has nothing of '" + system +
                                        "'; run a program that compiles with it once, then again this command "
                                        "('kiln cache ls' lists what there is)"),
                  console);
  }
  const Result<WrittenBundle> written = write_bundle(writer, *speaker, arguments.output);
  if (!written) return report(written.error(), console);
  if (arguments.json) {
    console.print(bundle_create_json(*written, {}, {}, {}));
    return kDone;
  }
  console.print(table_text(rows));
  console.print(written->text());
  return kDone;
}

}  // namespace kiln::cli
