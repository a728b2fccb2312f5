// SPDX-License-Identifier: Apache-2.0
#include "backends/dependency_builder.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "backends/source_scan.hpp"
#include "backends/text_facts.hpp"
#include "core/added_directory.hpp"

namespace kiln {
namespace {

// Returns true for paths that the kernel resolves differently for each process. The working directory is an exception:
// it is the recipe's, see `PathRoots::path_of`.
bool is_of_one_process(std::string_view path) {
  for (const std::string_view directory : {"/proc/self/", "/proc/thread-self/"}) {
    if (!path.starts_with(directory)) continue;
    const std::string_view rest = path.substr(directory.size());
    return rest != "cwd" && !rest.starts_with("cwd/");
  }
  return false;
}

class DependencyBuilder {
 public:
  DependencyBuilder(const Recipe& recipe, FileDigestCache& digests, const std::vector<std::string>& vendor_directories)
      : recipe_(recipe), places_(recipe.path_roots()), digests_(digests) {
    for (const std::string& directory : vendor_directories)
      vendor_directories_.push_back(normalize_path(directory) + '/');
    for (const IncludeRoot& root : places_.roots) prefixes_.push_back(normalize_path(root.path));
  }

  DependencyResult build(const std::vector<FileAccess>& observations, bool debug_paths, std::string_view bytes) {
    out_.dependency_set.embeds_paths = debug_paths;
    out_.dependency_set.embeds_mtimes = debug_paths;
    for (const FileAccess& observation : observations) {
      if (observation.state != FileAccess::State::Read) continue;
      read_by_inode_.emplace(inode_of(observation.stamp), &observation.content);
      read_by_path_.emplace(normalize_path(observation.path), &observation);
    }
    for (const FileAccess& observation : observations) {
      add(observation);
      if (!out_.uncacheable_reason.empty()) return std::move(out_);
    }
    for (const std::string_view text : texts_of(recipe_)) pieces_.add(text);
    if (const std::string_view macro = pieces_.time_macro(); !macro.empty()) {
      out_.uncacheable_reason = "the sources can paste tokens into " + std::string(macro);
      out_.permanent = true;
      return std::move(out_);
    }
    find_duplicates();
    for (DependencySet::NestedRoot& nesting : find_nested_roots(places_)) {
      // A root that equals the working directory has no names: its files are named relative to the working directory.
      if (used_.contains(nesting.inner) || nesting.subpath.empty())
        out_.dependency_set.nested_roots.push_back(std::move(nesting));
    }
    for (const std::string_view text : texts_of(recipe_)) scan_for_paths(text);
    if (!read_.empty()) named_by_text_ = named_by_text_ || pieces_.names_file();
    // Macros can put the path of a root together.
    named_by_text_ = named_by_text_ || (starts_root_ && computes_include_);
    if (named_by_text_ || named_by_output(bytes)) out_.dependency_set.embeds_paths = true;
    if (out_.dependency_set.embeds_paths) {
      out_.dependency_set.working_directory = places_.working_directory;
      for (const IncludeRoot& root : places_.roots) out_.dependency_set.root_paths.push_back(root.path);
    }
    if (!out_.dependency_set.embeds_mtimes) {
      for (DependencySet::Dependency& item : out_.dependency_set.items) item.modified_s = 0;
    }
    return std::move(out_);
  }

 private:
  using Inode = std::pair<std::uint64_t, std::uint64_t>;
  static Inode inode_of(const FileStamp& stamp) { return {stamp.device, stamp.inode}; }

  // Properties of the file that a dependency refers to.
  struct Origin {
    Inode inode{};
    bool has_once = false;
  };

  struct Name {
    std::uint16_t root;
    std::string name;
  };

  // Returns whether the compiler can have made the path from the root, whose spelling it does not change. The recorder
  // of commands normalizes both; `scan_for_paths` finds a normalized path in a source.
  bool is_spelled_like(std::size_t root, std::string_view spelled) const {
    std::string_view start = places_.roots[root].path;
    while (start.size() > 1 && start.ends_with('/')) start.remove_suffix(1);
    return !start.starts_with('/') || spelled.starts_with(start) || spelled.starts_with(prefixes_[root]);
  }

  // `spelled` is the path as the compiler gave it.
  Name name_of(const std::string& path, std::string_view spelled) const {
    std::size_t longest = 0;
    Name name{DependencySet::kAbsolute, path};
    if (path.empty() || path.front() != '/') name.root = DependencySet::kWorkingDirectory;
    for (std::size_t i = 0; i < prefixes_.size(); ++i) {
      const std::string& prefix = prefixes_[i];
      // A root that equals the working directory has an empty prefix: its files are named relative to the working
      // directory.
      if (prefix.empty() || prefix.size() < longest || path.size() <= prefix.size() + 1) continue;
      if (path.compare(0, prefix.size(), prefix) != 0) continue;
      const bool whole = prefix == "/" || path[prefix.size()] == '/';
      if (!whole || prefix.size() == longest || !is_spelled_like(i, spelled)) continue;
      longest = prefix.size();
      name = {static_cast<std::uint16_t>(i), path.substr(prefix == "/" ? 1 : prefix.size() + 1)};
    }
    return name;
  }

  // Returns true for a file in the working directory that has the unit's name. Its presence affects debug information
  // only.
  bool is_no_input(const DependencySet::Dependency& item) const {
    return !out_.dependency_set.embeds_mtimes && item.root == DependencySet::kWorkingDirectory &&
           item.name == normalize_path(recipe_.unit.name()) && item.state != DependencySet::State::Read;
  }

  void add(const FileAccess& observation) {
    const std::string path = normalize_path(observation.path);
    if (path.empty()) return;
    const Name name = name_of(path, observation.path);
    used_.insert(name.root);
    if (observation.inconsistent) {
      out_.uncacheable_reason = path + " changed while the compiler ran";
    } else if (has_added_directory(path)) {
      out_.uncacheable_reason = "the compiler adds the working directory to the names of files";
      out_.permanent = true;
    } else if (name.root < places_.roots.size() && !places_.roots[name.root].sentinel.empty()) {
      add_sentinel(name.root);
    } else if (observation.state == FileAccess::State::Missing) {
      add_missing(name);
    } else if (is_of_one_process(path)) {
      out_.uncacheable_reason = path + " is a different file in each process";
    } else {
      add_file(name, observation);
    }
  }

  // The recorder of the compile has read the sentinel, too.
  void add_sentinel(std::uint16_t root) {
    if (!sealed_.insert(root).second) return;
    const std::string path = join_path(places_.roots[root].path, places_.roots[root].sentinel);
    const auto found = read_by_path_.find(normalize_path(path));
    if (found == read_by_path_.end() || !found->second->content.problem.empty()) {
      out_.uncacheable_reason = "the sentinel " + path + " was not read";
      return;
    }
    const FileAccess& sentinel = *found->second;
    push({root, DependencySet::State::Sentinel, places_.roots[root].sentinel, sentinel.content.digest,
          seconds_of(sentinel.stamp)},
         {});
  }

  // Records one missing directory instead of all missing files in it. The next lookup then checks a few dozen paths,
  // not thousands.
  void add_missing(const Name& name) {
    std::string shortest = name.name;
    for (std::size_t slash = 0;; ++slash) {
      slash = name.name.find('/', slash);
      if (slash == std::string::npos) break;
      if (slash == 0) continue;
      if (!exists(places_.path_of(name.root, name.name.substr(0, slash)))) {
        shortest = name.name.substr(0, slash + 1);
        break;
      }
    }
    if (name.root < places_.roots.size() && !exists(places_.path_of(name.root, "./"))) shortest = "./";
    if (!absent_.insert(std::to_string(name.root) + ':' + shortest).second) return;
    const DependencySet::Dependency item{name.root, DependencySet::State::Absent, shortest, {}, 0};
    if (is_no_input(item)) return;
    push(item, {});
    struct stat status;
    if (stat(places_.path_of(name.root, shortest).c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) {
      out_.uncacheable_reason = name.name + " appeared while the compiler ran";
    }
  }

  // Records the content that the compiler read. The current content on disk does not matter.
  void add_file(const Name& name, const FileAccess& observation) {
    const bool is_read = observation.state == FileAccess::State::Read;
    const std::string path = places_.path_of(name.root, name.name);
    // This file was found but not read, and it is the same file (inode) as one that was read. Its include guard or
    // `#pragma once` kept the compiler from reading the same text again. With other content, the compiler would have
    // read it.
    const auto link = read_by_inode_.find(inode_of(observation.stamp));
    if (!is_read && link == read_by_inode_.end()) {
      DependencySet::Dependency item{
          name.root, DependencySet::State::Present, name.name, {}, seconds_of(observation.stamp)};
      if (!is_no_input(item)) push(std::move(item), {});
      return;
    }
    const FileContent& content = is_read ? observation.content : *link->second;
    if (!content.problem.empty()) {
      out_.uncacheable_reason = path + " " + content.problem;
      return;
    }
    // Called for its side effect: the next process that looks up the result finds these digests cached.
    (void)digests_.lookup(path);
    push({name.root, DependencySet::State::Read, name.name, content.digest, seconds_of(observation.stamp)},
         {inode_of(observation.stamp), content.facts.has_once});
    if (!is_read) return;
    read_.push_back(observation.path);
    if (!content.facts.time_macro.empty()) {
      out_.uncacheable_reason = path + " uses " + content.facts.time_macro;
      out_.permanent = true;
    }
    note_facts(content.facts, is_vendor_header(name, content.facts));
  }

  void note_facts(const TextFacts& facts, bool is_vendor_header) {
    if (is_vendor_header) {
      read_vendor_ = true;
      if (facts.pastes) pieces_.note_paste();
    } else {
      named_by_text_ = named_by_text_ || facts.names_file || facts.names_reader || facts.names_root;
      starts_root_ = starts_root_ || facts.starts_root;
      computes_include_ = computes_include_ || facts.computes_include;
      pieces_.add(facts);
    }
  }

  bool is_vendor_header(const Name& name, const TextFacts& facts) const {
    if (facts.is_vendors || name.root < places_.roots.size()) return facts.is_vendors;
    return std::any_of(vendor_directories_.begin(), vendor_directories_.end(),
                       [&](const std::string& directory) { return name.name.starts_with(directory); });
  }

  static std::int64_t seconds_of(const FileStamp& stamp) { return stamp.modified_ns / 1'000'000'000; }

  void find_duplicates() {
    std::map<Digest, std::vector<std::uint32_t>> same;
    for (std::uint32_t i = 0; i < out_.dependency_set.items.size(); ++i) {
      if (out_.dependency_set.items[i].state == DependencySet::State::Read && origins_[i].has_once) {
        same[out_.dependency_set.items[i].digest].push_back(i);
      }
    }
    for (const auto& [digest, members] : same) {
      for (std::size_t second = 1; second < members.size(); ++second) {
        for (std::size_t first = 0; first < second; ++first) {
          const bool one_file = origins_[members[first]].inode == origins_[members[second]].inode;
          out_.dependency_set.duplicate_files.push_back({members[first], members[second], one_file});
        }
      }
    }
  }

  void scan_for_paths(std::string_view text) {
    // A macro of the unit can take effect within a header.
    named_by_text_ = named_by_text_ || (!read_.empty() && may_expand_includer_name(text));
    // An include by absolute path is recorded like an include through the root that contains it. The root must
    // therefore stay at its path.
    if (std::none_of(used_.begin(), used_.end(), [&](std::uint16_t root) { return has_absolute_path(root); })) return;
    starts_root_ = starts_root_ || has_component(text, first_components(prefixes_));
    computes_include_ = computes_include_ || may_compute_include(text);
    for (const std::string& prefix : prefixes_) {
      named_by_text_ = named_by_text_ || (prefix.starts_with('/') && text.find(prefix) != std::string_view::npos);
    }
  }

  bool has_absolute_path(std::uint16_t root) const {
    return root < prefixes_.size() && prefixes_[root].starts_with('/');
  }

  // Searches for directories with a trailing slash, because a path in the output ends in a slash and a name. A
  // directory called `a` then does not match every text with an `a` in it.
  bool named_by_output(std::string_view bytes) const {
    if (read_.empty()) return false;
    // LTO-IR packs texts at bit level, where a search cannot find them.
    if (recipe_.target.form == Form::LtoIr && read_vendor_) return true;
    std::unordered_set<std::string> directories;
    for (const std::string& path : read_) {
      if (const auto slash = path.rfind('/'); slash != std::string::npos) directories.insert(path.substr(0, slash + 1));
    }
    for (const std::string& directory : directories) {
      if (directory.size() <= 2) continue;
      if (bytes.find(directory) != std::string_view::npos) return true;
      if (recipe_.target.form == Form::Ptx && bytes.find(as_ptx_data(directory)) != std::string_view::npos) return true;
    }
    return false;
  }

  // Returns the text as PTX data. PTX contains texts as lists of numbers: `.b8 text[4] = {104, 46, 104};`
  static std::string as_ptx_data(std::string_view text) {
    std::string list;
    for (const char c : text) list += (list.empty() ? "" : ", ") + std::to_string(static_cast<unsigned char>(c));
    return list;
  }

  void push(DependencySet::Dependency item, const Origin& origin) {
    out_.dependency_set.items.push_back(std::move(item));
    origins_.push_back(origin);
  }

  const Recipe& recipe_;
  const PathRoots places_;
  FileDigestCache& digests_;
  std::vector<std::string> prefixes_;
  std::vector<std::string> vendor_directories_;  // outside the roots; each ends in a slash
  std::unordered_set<std::uint16_t> sealed_;
  std::unordered_set<std::string> absent_;
  std::vector<std::string> read_;
  std::map<Inode, const FileContent*> read_by_inode_;
  std::unordered_map<std::string, const FileAccess*> read_by_path_;
  std::vector<Origin> origins_;  // one per dependency, in the same order
  MacroPieces pieces_;
  std::unordered_set<std::uint16_t> used_;
  bool read_vendor_ = false;
  bool named_by_text_ = false;
  bool starts_root_ = false;
  bool computes_include_ = false;
  DependencyResult out_;
};

}  // namespace

DependencyResult build_dependency_set(const Recipe& recipe, const std::vector<FileAccess>& observations,
                                      bool debug_paths, std::string_view bytes, FileDigestCache& digests,
                                      const std::vector<std::string>& vendor_directories) {
  return DependencyBuilder(recipe, digests, vendor_directories).build(observations, debug_paths, bytes);
}

}  // namespace kiln
