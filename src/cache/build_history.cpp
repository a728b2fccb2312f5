// SPDX-License-Identifier: Apache-2.0
#include "cache/build_history.hpp"

#include "base/codec.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

ShardedName name_of(const std::string& kind, const std::string& name) {
  BinaryWriter out;
  out.text("kiln history 1").text(kind).text(name);
  return {"history", sha256(out.bytes())};
}

}  // namespace

Result<std::vector<Build>> BuildHistory::builds(const std::string& kind, const std::string& name) {
  const auto file = directory_.read(name_of(kind, name).c_str(), kMaxBytes);
  if (!file) return file.error();
  if (!*file) return std::vector<Build>();
  auto history = decode_history((*file)->bytes.view());
  if (!history || history->kind != kind || history->name != name) return std::vector<Build>();
  return std::move(history->builds);
}

Status BuildHistory::record(const Recipe& recipe, const ArtifactKey& key, double cost_ms) {
  UnitHistory history{recipe.unit.kind(), recipe.unit.name(), {}};
  if (auto known = builds(history.kind, history.name)) history.builds = std::move(*known);
  std::erase_if(history.builds, [&](const Build& build) { return build.key == key; });
  history.builds.insert(history.builds.begin(), Build::of(recipe, key, cost_ms, directory_.clock().wall()));
  return directory_.publish(name_of(history.kind, history.name).str(), {encode(history)},
                            [&](std::int64_t bytes) { journal_.add(bytes); });
}

}  // namespace kiln
