// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/bundle/bundle_diff.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "apps/kiln/bundle/bundle_files.hpp"
#include "base/error.hpp"

namespace kiln::cli {
namespace {

using Described = BundleDescription::Artifact;
using File = BundleDescription::File;
// The identity of an artifact in the comparison: unit name, kind and target.
using Slot = std::tuple<std::string, std::string, std::string>;
using Slots = std::map<Slot, std::vector<const Described*>>;

constexpr std::size_t kMaxFiles = 5;

Slots slots_of(const BundleDescription& description) {
  Slots slots;
  for (const Described& artifact : description.artifacts) {
    slots[{artifact.unit, artifact.kind, artifact.target.name()}].push_back(&artifact);
  }
  return slots;
}

// Returns the headers that differ: changed, added or removed since the old bundle.
std::vector<std::string> changed_files(const Described& then, const Described& now) {
  std::map<std::pair<std::string, std::string>, std::pair<const File*, const File*>> files;
  for (const File& file : then.files) files[{file.place, file.name}].first = &file;
  for (const File& file : now.files) files[{file.place, file.name}].second = &file;
  std::vector<std::string> changed;
  for (const auto& [name, both] : files) {
    const auto& [before, after] = both;
    if (before != nullptr && after != nullptr && *before == *after) continue;
    const char* how = before == nullptr ? " is new" : after == nullptr ? " is gone" : " changed";
    changed.push_back("header " + name.second + " (" + name.first + ")" + how);
  }
  if (changed.size() > kMaxFiles) {
    const std::size_t more = changed.size() - kMaxFiles;
    changed.resize(kMaxFiles);
    changed.push_back("and " + std::to_string(more) + " more files");
  }
  return changed;
}

std::vector<std::string> reasons(const Described& then, const Described& now) {
  std::vector<std::string> reason;
  if (then.unit_key != now.unit_key) reason.emplace_back("source, options or entries");
  if (then.compiler != now.compiler || then.version != now.version) {
    reason.push_back("compiler " + then.compiler + ' ' + then.version + " -> " + now.compiler + ' ' + now.version);
  } else if (then.compiler_digest != now.compiler_digest) {
    reason.push_back("different build of " + then.compiler + ' ' + then.version);
  }
  for (std::string& file : changed_files(then, now)) reason.push_back(std::move(file));
  if (reason.empty() && then.key != now.key) reason.emplace_back("the compiler's environment");
  return reason;
}

Result<Bytes> bytes_of(Bundle& bundle, const ArtifactKey& key) {
  Result<std::optional<Hit>> hit = bundle.get(key, {});
  if (!hit) return hit.error();
  if (!*hit)
    return make_error(Code::Corrupt,
                      bundle.describe() + ": its description lists an artifact that it does not contain");
  return std::move((*hit)->artifact.bytes);
}

class Comparison {
 public:
  Comparison(Bundle& then, Bundle& now) : then_(then), now_(now) {}

  Status compare(const Slots& then, const Slots& now);
  BundleDiff take() { return std::move(diff_); }

 private:
  Status compare(const Slot& slot, const Described& then, const Described& now);
  void only(BundleDiff::Kind kind, const Slot& slot) {
    diff_.items.push_back({kind, std::get<0>(slot), std::get<2>(slot), {}, false});
  }

  Bundle& then_;
  Bundle& now_;
  BundleDiff diff_;
};

Status Comparison::compare(const Slot& slot, const Described& then, const Described& now) {
  const Result<Bytes> before = bytes_of(then_, then.key);
  if (!before) return before.error();
  const Result<Bytes> after = bytes_of(now_, now.key);
  if (!after) return after.error();
  const bool same_bytes = *before == *after;
  if (then.key == now.key && same_bytes) {
    ++diff_.same;
    return {};
  }
  BundleDiff::Item item{BundleDiff::Kind::Changed, std::get<0>(slot), std::get<2>(slot), reasons(then, now),
                        same_bytes};
  if (item.reason.empty())
    item.reason.emplace_back("different bytes for the same key, which is normal for CCCL compiles");
  diff_.items.push_back(std::move(item));
  return {};
}

Status Comparison::compare(const Slots& then, const Slots& now) {
  for (const auto& [slot, before] : then) {
    const auto found = now.find(slot);
    if (found == now.end()) {
      for (std::size_t i = 0; i < before.size(); ++i) only(BundleDiff::Kind::Removed, slot);
      continue;
    }
    const auto& after = found->second;
    const std::size_t both = std::min(before.size(), after.size());
    for (std::size_t i = 0; i < both; ++i) {
      if (Status compared = compare(slot, *before[i], *after[i]); !compared) return compared;
    }
    for (std::size_t i = both; i < before.size(); ++i) only(BundleDiff::Kind::Removed, slot);
    for (std::size_t i = both; i < after.size(); ++i) only(BundleDiff::Kind::Added, slot);
  }
  for (const auto& [slot, after] : now) {
    if (then.count(slot) != 0) continue;
    for (std::size_t i = 0; i < after.size(); ++i) only(BundleDiff::Kind::Added, slot);
  }
  return {};
}

std::vector<std::string> changed_heads(const BundleHeader& then, const BundleHeader& now) {
  std::vector<std::string> heads;
  const std::string before = identity_text(then.name_space, then.epoch, signer_of(then));
  const std::string after = identity_text(now.name_space, now.epoch, signer_of(now));
  if (before != after) heads.push_back(before + " -> " + after);
  return heads;
}

}  // namespace

Result<BundleDiff> diff_bundles(Bundle& then, Bundle& now) {
  const Result<BundleDescription> before = then.description();
  if (!before) return before.error();
  const Result<BundleDescription> after = now.description();
  if (!after) return after.error();
  Comparison comparison(then, now);
  if (Status compared = comparison.compare(slots_of(*before), slots_of(*after)); !compared) return compared.error();
  BundleDiff diff = comparison.take();
  diff.heads = changed_heads(then.header(), now.header());
  return diff;
}

}  // namespace kiln::cli
