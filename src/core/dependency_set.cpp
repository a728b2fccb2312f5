// SPDX-License-Identifier: Apache-2.0
#include "core/dependency_set.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "core/added_directory.hpp"
#include "core/dependency_set_codec.hpp"

namespace kiln {
namespace {

// Returns whether a path is missing. A missing directory covers every name below it. A directory in place of a file
// counts as missing, because the compiler then continued its search.
bool absent(const std::string& path, const std::string& name) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return true;
  return S_ISDIR(status.st_mode) && !name.ends_with('/');
}

std::string describe(const DependencySet::Dependency& item, const std::string& path,
                     const std::optional<Digest>& found) {
  switch (item.state) {
    case DependencySet::State::Read:
      if (!found) return path + " no longer exists";
      if (*found == item.digest) return path + " has a different modification time";
      return path + " changed: " + item.digest.hex().substr(0, 12) + " before, " + found->hex().substr(0, 12) + " now";
    case DependencySet::State::Absent: return path + " did not exist before and exists now";
    case DependencySet::State::Present: return path + " existed before and is missing now";
    case DependencySet::State::Sentinel:
      if (!found) return "the sentinel " + path + " is missing";
      return "the sentinel " + path + " changed: " + item.digest.hex().substr(0, 12) + " before, " +
             found->hex().substr(0, 12) + " now";
  }
  return path;
}

// The root paths, each resolved once: a dependency set has hundreds of names below a few roots.
class Paths {
 public:
  explicit Paths(const PathRoots& places) : places_(places) {
    for (const IncludeRoot& root : places.roots) {
      roots_.push_back(locate(places.working_directory, root.path));
      if (!roots_.back().empty() && roots_.back().back() != '/') roots_.back() += '/';
    }
  }
  // Returns the path of an item, valid until the next call.
  const std::string& of(const DependencySet::Dependency& item) {
    if (item.root < roots_.size() && !item.name.starts_with('/')) {
      path_.assign(roots_[item.root]).append(item.name);
    } else {
      path_ = places_.path_of(item.root, item.name);
    }
    return path_;
  }

 private:
  const PathRoots& places_;
  std::vector<std::string> roots_;
  std::string path_;
};

std::optional<Mismatch> check_item(const DependencySet::Dependency& item, bool timed, Paths& paths,
                                   FileDigestCache& digests, std::optional<std::chrono::nanoseconds> requested_at) {
  const std::string& path = paths.of(item);
  std::optional<Digest> found;
  bool same = false;
  switch (item.state) {
    case DependencySet::State::Read:
    case DependencySet::State::Sentinel: {
      if (const auto seen = digests.lookup(path, requested_at)) {
        found = seen->digest;
        same = *found == item.digest && (!timed || seen->stamp.modified_ns / 1'000'000'000 == item.modified_s);
      }
      break;
    }
    case DependencySet::State::Absent:
      // Earlier versions of kiln stored such names. The names of all other items are relative.
      same = absent(path, item.name) && !has_added_directory(item.name);
      break;
    case DependencySet::State::Present:
      if (timed) {
        const auto stamp = stamp_of(path.c_str());
        same = stamp && stamp->modified_ns / 1'000'000'000 == item.modified_s;
      } else {
        same = exists(path);
      }
      break;
  }
  if (same) return std::nullopt;
  return Mismatch{item, path, found, describe(item, path, found)};
}

}  // namespace

std::string locate(const std::string& working_directory, std::string_view path) {
  for (const std::string_view own : {"/proc/self/cwd", "/proc/thread-self/cwd"}) {
    if (!path.starts_with(own)) continue;
    const std::string_view rest = path.substr(own.size());
    if (rest.empty()) return working_directory;
    if (rest.front() == '/') return working_directory + std::string(rest);
  }
  return join_path(working_directory, path);
}

std::string PathRoots::path_of(std::uint16_t root, std::string_view name) const {
  if (root == DependencySet::kAbsolute || root == DependencySet::kWorkingDirectory)
    return locate(working_directory, name);
  if (root >= roots.size()) return {};
  return join_path(locate(working_directory, roots[root].path), name);
}

std::vector<DependencySet::NestedRoot> find_nested_roots(const PathRoots& places) {
  std::vector<DependencySet::NestedRoot> nestings;
  for (std::size_t inner = 0; inner < places.roots.size(); ++inner) {
    const std::string path = normalize_path(places.roots[inner].path);
    if (path.empty() || path.front() != '/') {
      nestings.push_back({DependencySet::kWorkingDirectory, static_cast<std::uint16_t>(inner), path});
    }
    for (std::size_t outer = 0; outer < places.roots.size(); ++outer) {
      const std::string above = normalize_path(places.roots[outer].path);
      if (outer == inner || !path.starts_with(above) || above.empty()) continue;
      if (path.size() > above.size() && above != "/" && path[above.size()] != '/') continue;
      nestings.push_back(
          {static_cast<std::uint16_t>(outer), static_cast<std::uint16_t>(inner), path.substr(above.size())});
    }
  }
  return nestings;
}

bool DependencySet::is_host_specific() const {
  return embeds_paths || embeds_mtimes ||
         std::any_of(items.begin(), items.end(), [](const Dependency& item) { return item.root == kAbsolute; });
}

std::string DependencySet::encode() const {
  BinaryWriter out;
  out.reserve(64 + items.size() * 96);
  write_dependency_set(out, *this);
  return std::move(out).bytes();
}

namespace {

void decode_relations(BinaryReader& in, DependencySet& dependency_set) {
  const std::uint32_t duplicates = in.count(9);
  for (std::uint32_t i = 0; i < duplicates && in.ok(); ++i) {
    DependencySet::DuplicateFiles pair;
    pair.first = in.u32();
    pair.second = in.u32();
    const std::uint8_t one_file = in.u8();
    pair.same_file = one_file == 1;
    if (pair.first >= dependency_set.items.size() || pair.second >= dependency_set.items.size() || one_file > 1)
      in.fail();
    dependency_set.duplicate_files.push_back(pair);
  }
  const std::uint32_t nestings = in.count(8);
  for (std::uint32_t i = 0; i < nestings && in.ok(); ++i) {
    DependencySet::NestedRoot nesting;
    nesting.outer = in.u16();
    nesting.inner = in.u16();
    nesting.subpath = in.text();
    dependency_set.nested_roots.push_back(std::move(nesting));
  }
  if (duplicates == 0 && nestings == 0) in.fail();  // keeps the encoding canonical
}

}  // namespace

Result<DependencySet> DependencySet::decode(std::string_view bytes) {
  BinaryReader in(bytes);
  DependencySet dependency_set;
  const std::uint8_t version = in.u8();
  const std::uint8_t flags = in.u8();
  if (!in.ok() || version != kDependencySetVersion || flags > 7) {
    return make_error(Code::Corrupt, "dependency set: unknown version " + std::to_string(version));
  }
  dependency_set.embeds_paths = (flags & 1) != 0;
  dependency_set.embeds_mtimes = (flags & 2) != 0;
  if (dependency_set.embeds_paths) {
    dependency_set.working_directory = in.text();
    const std::uint32_t roots = in.count(4);
    for (std::uint32_t i = 0; i < roots && in.ok(); ++i) dependency_set.root_paths.emplace_back(in.text());
  }
  const std::uint32_t count = in.count(7);
  dependency_set.items.reserve(count);
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    Dependency& item = dependency_set.items.emplace_back();
    item.root = in.u16();
    const std::uint8_t state = in.u8();
    if (state < 1 || state > 4) in.fail();
    item.state = static_cast<State>(state);
    item.name = in.text();
    if (item.name.find('\0') != std::string::npos) in.fail();
    if (item.state == State::Read || item.state == State::Sentinel) item.digest = in.digest();
    if (dependency_set.embeds_mtimes) item.modified_s = static_cast<std::int64_t>(in.u64());
  }
  if ((flags & 4) != 0) decode_relations(in, dependency_set);
  if (!in.at_end()) return make_error(Code::Corrupt, "dependency set: truncated or trailing bytes");
  return dependency_set;
}

namespace {

std::optional<Mismatch> check_nestings(const DependencySet& dependency_set, const PathRoots& places) {
  if (dependency_set.nested_roots.empty()) return std::nullopt;
  const std::vector<DependencySet::NestedRoot> now = find_nested_roots(places);
  for (const DependencySet::NestedRoot& nesting : dependency_set.nested_roots) {
    if (std::find(now.begin(), now.end(), nesting) != now.end()) continue;
    return Mismatch{{}, places.working_directory, std::nullopt, "the nesting of the include directories changed"};
  }
  return std::nullopt;
}

std::optional<Mismatch> check_duplicates(const DependencySet::DuplicateFiles& pair, const DependencySet& dependency_set,
                                         const PathRoots& places) {
  const DependencySet::Dependency& second = dependency_set.items[pair.second];
  const std::string first_path =
      places.path_of(dependency_set.items[pair.first].root, dependency_set.items[pair.first].name);
  const std::string second_path = places.path_of(second.root, second.name);
  const auto a = stamp_of(first_path.c_str());
  const auto b = stamp_of(second_path.c_str());
  if (a && b && (a->device == b->device && a->inode == b->inode) == pair.same_file) return std::nullopt;
  return Mismatch{
      second, second_path, std::nullopt,
      second_path + (pair.same_file ? " was the same file as " : " was not the same file as ") + first_path};
}

std::optional<Mismatch> check_places(const DependencySet& dependency_set, const PathRoots& places) {
  if (auto mismatch = check_nestings(dependency_set, places)) return mismatch;
  if (!dependency_set.embeds_paths) return std::nullopt;
  std::string text;
  if (dependency_set.working_directory != places.working_directory) {
    text = "the working directory was " + dependency_set.working_directory;
  } else if (dependency_set.root_paths.size() > places.roots.size()) {
    text = "the number of include directories changed";
  }
  // A compile can use fewer roots than there are: the last ones are the compiler's. The unit's number is in its key.
  for (std::size_t i = 0; text.empty() && i < dependency_set.root_paths.size(); ++i) {
    if (dependency_set.root_paths[i] != places.roots[i].path)
      text = "an include directory was " + dependency_set.root_paths[i];
  }
  if (text.empty()) return std::nullopt;
  return Mismatch{{}, places.working_directory, std::nullopt, text + " (the output contains paths)"};
}

}  // namespace

std::optional<Mismatch> check(const DependencySet& dependency_set, const PathRoots& places, FileDigestCache& digests,
                              std::optional<std::chrono::nanoseconds> requested_at) {
  if (auto mismatch = check_places(dependency_set, places)) return mismatch;
  Paths paths(places);
  for (const DependencySet::Dependency& item : dependency_set.items) {
    if (auto mismatch = check_item(item, dependency_set.embeds_mtimes, paths, digests, requested_at)) return mismatch;
  }
  for (const DependencySet::DuplicateFiles& pair : dependency_set.duplicate_files) {
    if (auto mismatch = check_duplicates(pair, dependency_set, places)) return mismatch;
  }
  return std::nullopt;
}

std::optional<Mismatch> check_dependencies(const DependencySet& dependency_set, std::span<const std::uint32_t> which,
                                           const PathRoots& places, FileDigestCache& digests,
                                           std::optional<std::chrono::nanoseconds> requested_at) {
  if (which.empty()) return std::nullopt;
  Paths paths(places);
  for (const std::uint32_t i : which) {
    if (auto mismatch = check_item(dependency_set.items[i], dependency_set.embeds_mtimes, paths, digests, requested_at))
      return mismatch;
  }
  return std::nullopt;
}

std::optional<Mismatch> check_relations(const DependencySet& dependency_set, const PathRoots& places) {
  if (auto mismatch = check_places(dependency_set, places)) return mismatch;
  for (const DependencySet::DuplicateFiles& pair : dependency_set.duplicate_files) {
    if (auto mismatch = check_duplicates(pair, dependency_set, places)) return mismatch;
  }
  return std::nullopt;
}

std::vector<Mismatch> mismatches(const DependencySet& dependency_set, const PathRoots& places,
                                 FileDigestCache& digests) {
  std::vector<Mismatch> all;
  if (auto mismatch = check_places(dependency_set, places)) all.push_back(std::move(*mismatch));
  Paths paths(places);
  for (const DependencySet::Dependency& item : dependency_set.items) {
    if (auto mismatch = check_item(item, dependency_set.embeds_mtimes, paths, digests, std::nullopt))
      all.push_back(std::move(*mismatch));
  }
  for (const DependencySet::DuplicateFiles& pair : dependency_set.duplicate_files) {
    if (auto mismatch = check_duplicates(pair, dependency_set, places)) all.push_back(std::move(*mismatch));
  }
  return all;
}

}  // namespace kiln
