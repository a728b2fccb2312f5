#include "bundle/bundle_writer.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <unordered_map>

#include <kiln/version.hpp>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "bundle/blob.hpp"
#include "bundle/bundle_description.hpp"
#include "bundle/bundle_format.hpp"
#include "bundle/bundle_index.hpp"
#include "core/recipe.hpp"
#include "store/store.hpp"

namespace kiln {
namespace {

using Members = std::vector<const BundleMember*>;

Members in_order(const std::vector<BundleMember>& members) {
  Members sorted;
  for (const BundleMember& member : members) sorted.push_back(&member);
  std::sort(sorted.begin(), sorted.end(), [](const BundleMember* a, const BundleMember* b) {
    const auto order = [](const BundleMember& member, const std::string& target) {
      return std::tie(member.artifact.about.unit, member.kind, member.unit, target, member.key);
    };
    const std::string a_target = a->artifact.target.name();
    const std::string b_target = b->artifact.target.name();
    return order(*a, a_target) < order(*b, b_target);
  });
  return sorted;
}

/// Which group the blobs of a unit's name are in.
class Groups {
 public:
  explicit Groups(const Members& members) {
    for (const BundleMember* member : members) numbers_.emplace(member->artifact.about.unit, 0);
    const bool by_digest = numbers_.size() > kMostBundleGroups - 1;
    for (auto& [name, number] : numbers_) {
      number = 1 + (by_digest ? sha256(name).bytes[0] % (kMostBundleGroups - 1) : count_);
      if (!by_digest) ++count_;
    }
    count_ = by_digest ? kMostBundleGroups : count_ + 1;
  }
  std::uint32_t of(const std::string& name) const { return numbers_.at(name); }
  std::uint32_t count() const { return count_; }

 private:
  std::map<std::string, std::uint32_t> numbers_;
  std::uint32_t count_ = 0;
};

/// Puts blobs one behind the other. The same bytes are put into a group once.
class Layout {
 public:
  explicit Layout(std::uint32_t groups) : groups_(groups), known_(groups) {}

  Result<BlobPlace> put(std::uint32_t group, std::string raw) {
    const auto [known, is_new] = known_[group].try_emplace(sha256(raw));
    if (!is_new) return known->second;
    auto packed = packer_.pack(std::move(raw));
    if (!packed) return std::move(packed).error();
    BlobPlace& place = known->second;
    place.group = group;
    place.method = packed->method;
    place.offset = groups_[group].size();
    place.stored = static_cast<std::uint32_t>(packed->stored.size());
    place.raw = packed->raw;
    place.digest = sha256(packed->stored);
    groups_[group] += packed->stored;
    groups_[group].resize((groups_[group].size() + 15) / 16 * 16, '\0');
    return place;
  }
  std::vector<std::string> groups() && { return std::move(groups_); }

 private:
  BlobPacker packer_;
  std::vector<std::string> groups_;
  std::vector<std::unordered_map<Digest, BlobPlace>> known_;
};

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

}  // namespace

Result<bool> BundleWriter::add(BundleMember member) {
  const Target& target = member.artifact.target;
  BundleRow row;
  set_target(row, target);
  const auto parsed = target.form == Form::OpenClBinary ? Result<Target>(target) : Target::parse(target.name());
  if (!parsed || (target.form != Form::OpenClBinary && target_of(row) != target)) {
    return failure(Code::InvalidArgument, "'" + target.name() + "' is no target that a bundle can have");
  }
  const Closure* const closure = member.artifact.closure.get();
  if (closure != nullptr && travels(*closure) && key_of(member.request, *closure) != member.key) {
    return failure(Code::InvalidArgument,
                   "the key of '" + member.artifact.about.unit + "' is not that of its request and closure");
  }
  if (!keys_.insert(member.key).second) return false;
  members_.push_back(std::move(member));
  return true;
}

Result<BundleImage> BundleWriter::finish(const SecretKey* key) const {
  if (!is_name_space(options_.name_space)) {
    return failure(Code::InvalidArgument, "'" + options_.name_space +
                                              "' is no namespace; give lower-case letters, digits and -_. in parts "
                                              "between slashes, such as acme/vision");
  }
  const Members members = in_order(members_);
  const Groups groups(members);
  Layout layout(groups.count());
  std::vector<IndexEntry> entries;
  std::unordered_map<RequestKey, std::size_t> closures;
  BundleDescription description;
  description.generator = std::string("kiln ") + version();
  for (const BundleMember* member : members) {
    const Artifact& artifact = member->artifact;
    const std::uint32_t group = groups.of(artifact.about.unit);
    auto place = layout.put(group, encode_artifact_blob(member->key, member->request, artifact));
    if (!place) return std::move(place).error();
    IndexEntry entry{member->unit, artifact.target, member->key, member->request, *place, {}};
    const Closure* closure = artifact.closure.get();
    if (closure != nullptr && (!travels(*closure) || closures[member->request] == Store::kMostClosures))
      closure = nullptr;
    if (closure != nullptr) {
      auto told = layout.put(group, closure->encode());
      if (!told) return std::move(told).error();
      entry.closure = *told;
      ++closures[member->request];
    }
    entries.push_back(std::move(entry));
    description.artifacts.push_back(describe(*member, closure));
  }
  auto described = layout.put(0, description.encode());
  if (!described) return std::move(described).error();
  BundleHeader header;
  header.epoch = options_.epoch;
  header.name_space = options_.name_space;
  header.description = *described;
  const std::vector<BundleRow> rows = index_rows(entries);
  if (rows.size() > std::size_t{kMostBundlePages} * kRowsPerPage) {
    return failure(Code::Unsupported, "a bundle takes up to ten million rows; make several");
  }
  const std::string pages = encode_pages(rows, header);
  BundleImage image;
  image.groups = std::move(layout).groups();
  for (const std::string& group : image.groups) header.group_sizes.push_back(group.size());
  image.head = encode_bundle_header(header, key) + pages;
  return image;
}

namespace {

std::string place_name(std::uint16_t root) {
  return root == Closure::kWorkingDirectory ? "working directory" : "root " + std::to_string(root);
}

const char* state_name(Closure::State state) {
  switch (state) {
    case Closure::State::Read: return "read";
    case Closure::State::Absent: return "absent";
    case Closure::State::Present: return "present";
    case Closure::State::Sealed: return "sealed";
  }
  return "unknown";
}

}  // namespace

BundleDescription::Artifact describe(const BundleMember& member, const Closure* closure) {
  BundleDescription::Artifact out;
  const Artifact& artifact = member.artifact;
  out.unit = artifact.about.unit;
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
  if (closure == nullptr) return out;
  for (const Closure::Item& item : closure->items) {
    const bool content = item.state == Closure::State::Read || item.state == Closure::State::Sealed;
    out.files.push_back(
        {place_name(item.root), item.name, state_name(item.state), content ? item.digest.hex() : std::string()});
  }
  return out;
}

}  // namespace kiln
