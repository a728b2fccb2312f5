#include "bundle/bundle_writer.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <thread>
#include <tuple>
#include <unordered_map>

#include <kiln/version.hpp>

#include "base/error.hpp"
#include "base/guarded.hpp"
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

/// Whether a bundle can say what it is for.
bool has_name(const Target& target) {
  if (target.form == Form::OpenClBinary || target.form == Form::Foreign) return true;
  BundleRow row;
  set_target(row, target);
  return Target::parse(target.name()).ok() && target_of(row) == target;
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

  BlobPlace put(std::uint32_t group, const PackedBlob& packed) {
    BlobPlace place;
    place.digest = sha256(packed.stored);
    const auto [known, is_new] = known_[group].try_emplace(place.digest);
    if (!is_new) return known->second;
    place.group = group;
    place.method = packed.method;
    place.offset = groups_[group].size();
    place.stored = static_cast<std::uint32_t>(packed.stored.size());
    place.raw = packed.raw;
    groups_[group] += packed.stored;
    groups_[group].resize((groups_[group].size() + 15) / 16 * 16, '\0');
    known->second = place;
    return place;
  }
  std::vector<std::string> groups() && { return std::move(groups_); }

 private:
  std::vector<std::string> groups_;
  std::vector<std::unordered_map<Digest, BlobPlace>> known_;
};

/// The artifacts, packed by all processors: at this level zstd takes most of the time in which a bundle is written.
std::vector<Result<PackedBlob>> pack_artifacts(const Members& members) {
  std::vector<Result<PackedBlob>> packed(members.size(), PackedBlob());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    BlobPacker packer;
    for (std::size_t i = next++; i < members.size(); i = next++) {
      const BundleMember& member = *members[i];
      packed[i] =
          guarded([&] { return packer.pack(encode_artifact_blob(member.key, member.request, member.artifact)); });
    }
  };
  std::vector<std::thread> threads;
  const std::size_t wanted = std::min<std::size_t>(std::thread::hardware_concurrency(), members.size() / 4);
  // Where no thread is to be had, or no packer for it, the others do its part: this one does what is left.
  attempt([&] {
    threads.reserve(wanted);
    while (threads.size() + 1 < wanted) threads.emplace_back([&] { attempt(work); });
  });
  const Status worked = guarded([&]() -> Status {
    work();
    return {};
  });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = next; !worked && i < members.size(); ++i) packed[i] = out_of_memory();
  return packed;
}

/// What of each member's closure is written: nothing where it says nothing elsewhere, nor where a request has more of
/// them than anybody keeps.
std::vector<const Closure*> closures_to_write(const Members& members) {
  std::vector<const Closure*> closures;
  std::unordered_map<RequestKey, std::size_t> counts;
  for (const BundleMember* member : members) {
    const Closure* const closure = member->artifact.closure.get();
    const bool written = closure != nullptr && travels(*closure) && counts[member->request]++ < Store::kMostClosures;
    closures.push_back(written ? closure : nullptr);
  }
  return closures;
}

/// The oldest that has all of it, for the readers that there are already.
std::uint32_t version_of(const Members& members) {
  const bool foreign = std::any_of(members.begin(), members.end(), [](const BundleMember* member) {
    return member->artifact.target.form == Form::Foreign;
  });
  return foreign ? kForeignBundleVersion : kBundleVersion;
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

Result<BundleImage> image_of(BundleHeader header, const std::vector<BundleRow>& rows, std::vector<std::string> groups,
                             const SecretKey* key) {
  if (rows.size() > std::size_t{kMostBundlePages} * kRowsPerPage) {
    return failure(Code::Unsupported, "a bundle takes up to ten million rows; make several");
  }
  const std::string pages = encode_pages(rows, header);
  for (const std::string& group : groups) header.group_sizes.push_back(group.size());
  return BundleImage{encode_bundle_header(header, key) + pages, std::move(groups)};
}

}  // namespace

Result<bool> BundleWriter::add(BundleMember member) {
  const Target& target = member.artifact.target;
  if (!has_name(target)) {
    return failure(Code::InvalidArgument, "'" + target.name() + "' is no target that a bundle can have");
  }
  if (target.form == Form::Foreign) member.artifact.closure = nullptr;  // its key covers it in its own way
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
  const auto packed = pack_artifacts(members);
  const auto closures = closures_to_write(members);
  BlobPacker packer;
  std::vector<IndexEntry> entries;
  BundleDescription description;
  description.generator = std::string("kiln ") + version();
  for (std::size_t i = 0; i < members.size(); ++i) {
    const BundleMember& member = *members[i];
    if (!packed[i]) return packed[i].error();
    const std::uint32_t group = groups.of(member.artifact.about.unit);
    IndexEntry entry{member.unit, member.artifact.target, member.key, member.request, {}, {}};
    entry.artifact = layout.put(group, *packed[i]);
    if (closures[i] != nullptr) {
      auto told = packer.pack(closures[i]->encode());
      if (!told) return std::move(told).error();
      entry.closure = layout.put(group, *told);
    }
    entries.push_back(std::move(entry));
    description.artifacts.push_back(describe(member, closures[i]));
  }
  auto described = packer.pack(description.encode());
  if (!described) return std::move(described).error();
  BundleHeader header;
  header.version = version_of(members);
  header.epoch = options_.epoch;
  header.name_space = options_.name_space;
  header.description = layout.put(0, *described);
  return image_of(std::move(header), index_rows(entries), std::move(layout).groups(), key);
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
