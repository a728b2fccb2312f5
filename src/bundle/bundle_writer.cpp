// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle_writer.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <thread>
#include <tuple>
#include <unordered_map>

#include <kiln/version.hpp>

#include "base/catch_to_error.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/process/signals.hpp"
#include "bundle/blob.hpp"
#include "bundle/bundle_description.hpp"
#include "bundle/bundle_format.hpp"
#include "bundle/bundle_index.hpp"
#include "cache/store.hpp"
#include "core/recipe.hpp"

namespace kiln {
namespace {

using Members = std::vector<const BundleMember*>;

Members in_order(const std::vector<BundleMember>& members) {
  Members sorted;
  for (const BundleMember& member : members) sorted.push_back(&member);
  std::sort(sorted.begin(), sorted.end(), [](const BundleMember* a, const BundleMember* b) {
    const auto order = [](const BundleMember& member, const std::string& target) {
      return std::tie(member.artifact.metadata.unit, member.kind, member.unit, target, member.key);
    };
    const std::string a_target = a->artifact.target.name();
    const std::string b_target = b->artifact.target.name();
    return order(*a, a_target) < order(*b, b_target);
  });
  return sorted;
}

/// Returns true if a bundle can represent the target.
bool has_name(const Target& target) {
  if (target.form == Form::OpenClBinary || target.form == Form::External) return true;
  BundleRow row;
  set_target(row, target);
  return Target::parse(target.name()).has_value() && target_of(row) == target;
}

/// Assigns a group to the blobs of each unit name.
class GroupAssignment {
 public:
  explicit GroupAssignment(const Members& members) {
    for (const BundleMember* member : members) numbers_.emplace(member->artifact.metadata.unit, 0);
    const bool by_digest = numbers_.size() > kMaxBundleGroups - 1;
    for (auto& [name, number] : numbers_) {
      number = 1 + (by_digest ? sha256(name).bytes[0] % (kMaxBundleGroups - 1) : count_);
      if (!by_digest) ++count_;
    }
    count_ = by_digest ? kMaxBundleGroups : count_ + 1;
  }
  std::uint32_t of(const std::string& name) const { return numbers_.at(name); }
  std::uint32_t count() const { return count_; }

 private:
  std::map<std::string, std::uint32_t> numbers_;
  std::uint32_t count_ = 0;
};

/// Appends blobs to groups. Equal bytes are stored in a group once.
class BlobLayout {
 public:
  explicit BlobLayout(std::uint32_t groups) : groups_(groups), known_(groups) {}

  BlobLocation put(std::uint32_t group, const PackedBlob& packed) {
    BlobLocation location;
    location.digest = sha256(packed.stored);
    const auto [known, is_new] = known_[group].try_emplace(location.digest);
    if (!is_new) return known->second;
    location.group = group;
    location.method = packed.method;
    location.offset = groups_[group].size();
    location.stored = static_cast<std::uint32_t>(packed.stored.size());
    location.raw = packed.raw;
    groups_[group] += packed.stored;
    groups_[group].resize((groups_[group].size() + 15) / 16 * 16, '\0');
    known->second = location;
    return location;
  }
  std::vector<std::string> groups() && { return std::move(groups_); }

 private:
  std::vector<std::string> groups_;
  std::vector<std::unordered_map<Digest, BlobLocation>> known_;
};

/// Compresses the artifacts on all cores: at this level, zstd takes most of the time of writing a bundle.
std::vector<Result<PackedBlob>> pack_artifacts(const Members& members) {
  std::vector<Result<PackedBlob>> packed(members.size(), PackedBlob());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    BlobPacker packer;
    for (std::size_t i = next++; i < members.size(); i = next++) {
      const BundleMember& member = *members[i];
      packed[i] = catch_to_error(
          [&] { return packer.pack(encode_artifact_blob(member.key, member.request, member.artifact)); });
    }
  };
  std::vector<std::thread> threads;
  const std::size_t wanted = std::min<std::size_t>(std::thread::hardware_concurrency(), members.size() / 4);
  // If a thread or its packer cannot be created, the other threads do its share, and this thread does the rest.
  ignore_failures([&] {
    const ScopedSignalBlock blocked;
    threads.reserve(wanted);
    while (threads.size() + 1 < wanted) threads.emplace_back([&] { ignore_failures(work); });
  });
  const Status worked = catch_to_error([&]() -> Status {
    work();
    return {};
  });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = next; !worked && i < members.size(); ++i) packed[i] = out_of_memory();
  return packed;
}

/// Returns the dependency set to write for each member: none if it is not usable on other machines, or if its request
/// already has the maximum number that stores retain.
std::vector<const DependencySet*> dependency_sets_to_write(const Members& members) {
  std::vector<const DependencySet*> dependency_sets;
  std::unordered_map<RequestKey, std::size_t> counts;
  for (const BundleMember* member : members) {
    const DependencySet* const dependency_set = member->artifact.dependency_set.get();
    const bool written = dependency_set != nullptr && is_shippable(*dependency_set) &&
                         counts[member->request]++ < Store::kMaxDependencySets;
    dependency_sets.push_back(written ? dependency_set : nullptr);
  }
  return dependency_sets;
}

/// Returns the oldest version that can represent all members, for existing readers.
std::uint32_t version_of(const Members& members) {
  const bool external = std::any_of(members.begin(), members.end(), [](const BundleMember* member) {
    return member->artifact.target.form == Form::External;
  });
  return external ? kExternalBundleVersion : kBundleVersion;
}

std::string encode_pages(const std::vector<BundleRow>& rows, BundleHeader& header) {
  std::string pages;
  for (std::size_t at = 0; at < rows.size(); at += kRowsPerPage) {
    std::string page;
    for (std::size_t i = at; i < std::min(at + kRowsPerPage, rows.size()); ++i) page += encode_row(rows[i]);
    page.resize(kBundlePage, '\0');
    BundleHeader::Page& entry = header.pages.emplace_back();
    entry.digest = sha256(page);
    std::memcpy(entry.first.data(), page.data(), kRowPrefix);
    pages += page;
  }
  header.row_count = static_cast<std::uint32_t>(rows.size());
  return pages;
}

Result<BundleImage> image_of(BundleHeader header, const std::string& pages, std::vector<std::string> groups,
                             const SecretKey* key) {
  for (const std::string& group : groups) header.group_sizes.push_back(group.size());
  return BundleImage{encode_bundle_header(header, key) + pages, std::move(groups)};
}

}  // namespace

Result<bool> BundleWriter::add(BundleMember member) {
  const Target& target = member.artifact.target;
  if (!has_name(target)) {
    return make_error(Code::InvalidArgument, "'" + target.name() + "' is not a valid target for a bundle");
  }
  if (target.form == Form::External) member.artifact.dependency_set = nullptr;  // the external key covers its inputs
  const DependencySet* const dependency_set = member.artifact.dependency_set.get();
  if (dependency_set != nullptr && is_shippable(*dependency_set) &&
      artifact_key(member.request, *dependency_set) != member.key) {
    return make_error(Code::InvalidArgument, "the key of '" + member.artifact.metadata.unit +
                                                 "' does not match its request and dependency set");
  }
  if (!keys_.insert(member.key).second) return false;
  members_.push_back(std::move(member));
  return true;
}

Result<BundleImage> BundleWriter::finish(const SecretKey* key) const {
  if (!is_name_space(options_.name_space)) {
    return make_error(Code::InvalidArgument,
                      "'" + options_.name_space +
                          "' is not a valid namespace; use lower-case letters, digits and -_. in parts "
                          "separated by slashes, such as acme/vision");
  }
  const Members members = in_order(members_);
  const GroupAssignment groups(members);
  BlobLayout layout(groups.count());
  const auto packed = pack_artifacts(members);
  const auto dependency_sets = dependency_sets_to_write(members);
  BlobPacker packer;
  std::vector<IndexEntry> entries;
  BundleDescription description;
  description.generator = std::string("kiln ") + version();
  for (std::size_t i = 0; i < members.size(); ++i) {
    const BundleMember& member = *members[i];
    if (!packed[i]) return packed[i].error();
    const std::uint32_t group = groups.of(member.artifact.metadata.unit);
    IndexEntry entry{member.unit, member.artifact.target, member.key, member.request, {}, {}};
    entry.artifact = layout.put(group, *packed[i]);
    if (dependency_sets[i] != nullptr) {
      auto reported = packer.pack(dependency_sets[i]->encode());
      if (!reported) return std::move(reported).error();
      entry.dependency_set = layout.put(group, *reported);
    }
    entries.push_back(std::move(entry));
    description.artifacts.push_back(describe(member, dependency_sets[i]));
  }
  const std::vector<BundleRow> rows = index_rows(entries);
  if (rows.size() > std::size_t{kMaxBundlePages} * kRowsPerPage) {
    return make_error(Code::Unsupported, "a bundle can have at most ten million rows; create several bundles");
  }
  BundleHeader header;
  const std::string pages = encode_pages(rows, header);
  if (options_.provenance) {
    auto statement = provenance_statement(*options_.provenance, compilers_of(description), sha256(pages));
    if (!statement) return std::move(statement).error();
    description.provenance = std::move(*statement);
  }
  auto described = packer.pack(description.encode());
  if (!described) return std::move(described).error();
  header.version = version_of(members);
  header.epoch = options_.epoch;
  header.name_space = options_.name_space;
  header.description = layout.put(0, *described);
  return image_of(std::move(header), pages, std::move(layout).groups(), key);
}

namespace {

std::string place_name(std::uint16_t root) {
  return root == DependencySet::kWorkingDirectory ? "working directory" : "root " + std::to_string(root);
}

const char* state_name(DependencySet::State state) {
  switch (state) {
    case DependencySet::State::Read: return "read";
    case DependencySet::State::Absent: return "absent";
    case DependencySet::State::Present: return "present";
    case DependencySet::State::Sentinel: return "sealed";
  }
  return "unknown";
}

}  // namespace

BundleDescription::Artifact describe(const BundleMember& member, const DependencySet* dependency_set) {
  BundleDescription::Artifact out;
  const Artifact& artifact = member.artifact;
  out.unit = artifact.metadata.unit;
  out.kind = member.kind;
  out.unit_key = member.unit;
  out.target = artifact.target;
  out.key = member.key;
  out.request = member.request;
  out.compiler = member.compiler;
  out.version = member.version;
  out.compiler_digest = member.compiler_digest;
  out.bytes = artifact.bytes.size();
  out.entries = artifact.entries;
  if (dependency_set == nullptr) return out;
  for (const DependencySet::Dependency& item : dependency_set->items) {
    const bool content = item.state == DependencySet::State::Read || item.state == DependencySet::State::Sentinel;
    out.files.push_back(
        {place_name(item.root), item.name, state_name(item.state), content ? item.digest.hex() : std::string()});
  }
  return out;
}

}  // namespace kiln
