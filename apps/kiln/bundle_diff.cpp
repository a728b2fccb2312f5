#include "apps/kiln/bundle_diff.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "apps/kiln/bundle_files.hpp"
#include "base/error.hpp"

namespace kiln::cli {
namespace {

using Described = BundleDescription::Artifact;
using File = BundleDescription::File;
// What people compare: the unit by its name, for a target.
using Slot = std::tuple<std::string, std::string, std::string>;
using Slots = std::map<Slot, std::vector<const Described*>>;

constexpr std::size_t kMostFiles = 5;

Slots slots_of(const BundleDescription& description) {
  Slots slots;
  for (const Described& artifact : description.artifacts) {
    slots[{artifact.unit, artifact.kind, artifact.target.name()}].push_back(&artifact);
  }
  return slots;
}

// Headers that were read or looked for, and came out otherwise.
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
  if (changed.size() > kMostFiles) {
    const std::size_t more = changed.size() - kMostFiles;
    changed.resize(kMostFiles);
    changed.push_back("and " + std::to_string(more) + " more files");
  }
  return changed;
}

std::vector<std::string> reasons(const Described& then, const Described& now) {
  std::vector<std::string> why;
  if (then.unit_key != now.unit_key) why.emplace_back("source, options or entries");
  if (then.compiler != now.compiler || then.version != now.version) {
    why.push_back("compiler " + then.compiler + ' ' + then.version + " -> " + now.compiler + ' ' + now.version);
  } else if (then.compiler_digest != now.compiler_digest) {
    why.push_back("another build of " + then.compiler + ' ' + then.version);
  }
  for (std::string& file : changed_files(then, now)) why.push_back(std::move(file));
  if (why.empty() && then.key != now.key) why.emplace_back("the compiler's environment");
  return why;
}

Result<Bytes> bytes_of(Bundle& bundle, const Key& key) {
  Result<std::optional<Hit>> hit = bundle.get(key);
  if (!hit) return hit.error();
  if (!*hit) return failure(Code::Corrupt, bundle.describe() + ": its description lists what it does not have");
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
  if (item.why.empty()) item.why.emplace_back("other bytes under the same key, as CCCL's compiles give");
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
  const std::string before = speaker_text(then.name_space, then.epoch, signer_of(then));
  const std::string after = speaker_text(now.name_space, now.epoch, signer_of(now));
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
