#include "compile/closure_builder.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <unordered_set>

#include "compile/source_text.hpp"

namespace kiln {
namespace {

// A file that changed this shortly before it was read could have changed again within the same tick of the file
// system's clock (10 ms at the slowest kernel setting) without its stamp showing it.
constexpr std::chrono::nanoseconds kTick = std::chrono::milliseconds(20);
// The clock of a file server may differ from ours.
constexpr std::chrono::nanoseconds kNetworkTick = std::chrono::seconds(2);

// NVIDIA's own headers mention __FILE__ and assert in macros that almost nobody expands, so for them the search of the
// output decides. A text search would tie every kernel that includes CUB to the place of its checkout.
bool is_vendor_root(const std::string& path) {
  return exists(join_path(path, "cuda_runtime_api.h")) || exists(join_path(path, "cub/version.cuh")) ||
         exists(join_path(path, "nv/target"));
}

bool is_on_network(const std::string& folder) {
  const Fd fd(open(folder.c_str(), O_PATH | O_CLOEXEC));
  return fd && on_network(fd.get());
}

class Builder {
 public:
  Builder(const Recipe& recipe, FileDigests& digests, const std::vector<std::string>& vendor_folders)
      : recipe_(recipe), places_(recipe.places()), digests_(digests) {
    for (const std::string& folder : vendor_folders) vendor_folders_.push_back(tidy_path(folder) + '/');
    for (const IncludeRoot& root : places_.roots) {
      prefixes_.push_back(tidy_path(root.path));
      vendor_.push_back(is_vendor_root(join_path(recipe.working_directory, root.path)));
      on_network_ = on_network_ || is_on_network(join_path(recipe.working_directory, root.path));
    }
    on_network_ = on_network_ || is_on_network(recipe.working_directory);
  }

  BuiltClosure build(const std::vector<Observation>& observations, bool debug_paths, std::string_view bytes) {
    out_.closure.located = debug_paths;
    out_.closure.timed = debug_paths;
    for (const Observation& observation : observations) {
      if (observation.state == Observation::State::Read) read_inodes_.insert(inode_of(observation.stamp));
    }
    for (const Observation& observation : observations) {
      add(observation);
      if (!out_.not_cacheable.empty()) return std::move(out_);
    }
    find_twins();
    for (Closure::Nesting& nesting : nestings_of(places_)) {
      // A root that is the working directory has no names of its own: they are the directory's.
      if (used_.contains(nesting.inner) || nesting.below.empty()) out_.closure.nestings.push_back(std::move(nesting));
    }
    if (!read_.empty()) {
      // A macro of the unit's own, or a path in it, can take effect within a header.
      for (const std::string_view text : texts_of(recipe_)) note_names(text);
    }
    if (named_by_text_ || named_by_output(bytes)) out_.closure.located = true;
    if (out_.closure.located) {
      out_.closure.working_directory = places_.working_directory;
      for (const IncludeRoot& root : places_.roots) out_.closure.root_paths.push_back(root.path);
    }
    if (!out_.closure.timed) {
      for (Closure::Item& item : out_.closure.items) item.modified_s = 0;
      // That a file of the program's own name lies in the working directory shows in debug information only.
      std::erase_if(out_.closure.items, [&](const Closure::Item& item) { return is_program(item); });
    }
    return std::move(out_);
  }

 private:
  using Inode = std::pair<std::uint64_t, std::uint64_t>;
  static Inode inode_of(const FileStamp& stamp) { return {stamp.device, stamp.inode}; }

  struct Name {
    std::uint16_t root;
    std::string name;
  };

  Name name_of(const std::string& path) const {
    std::size_t longest = 0;
    Name name{Closure::kAbsolute, path};
    if (path.empty() || path.front() != '/') name.root = Closure::kWorkingDirectory;
    for (std::size_t i = 0; i < prefixes_.size(); ++i) {
      const std::string& prefix = prefixes_[i];
      // A root that is the working directory itself has an empty prefix: its files are named as the directory's own.
      if (prefix.empty() || prefix.size() < longest || path.size() <= prefix.size() + 1) continue;
      if (path.compare(0, prefix.size(), prefix) != 0) continue;
      const bool whole = prefix == "/" || path[prefix.size()] == '/';
      if (!whole || prefix.size() == longest) continue;
      longest = prefix.size();
      name = {static_cast<std::uint16_t>(i), path.substr(prefix == "/" ? 1 : prefix.size() + 1)};
    }
    return name;
  }

  bool is_program(const Closure::Item& item) const {
    return item.root == Closure::kWorkingDirectory && item.name == tidy_path(recipe_.unit.name()) &&
           item.state != Closure::State::Read;
  }

  void add(const Observation& observation) {
    const std::string path = tidy_path(observation.path);
    if (path.empty() || path.starts_with("/proc/") || path.starts_with("/dev/") || path.starts_with("/sys/")) return;
    const Name name = name_of(path);
    used_.insert(name.root);
    if (observation.both) {
      out_.not_cacheable = path + " changed while the compiler ran";
    } else if (name.root < places_.roots.size() && !places_.roots[name.root].seal.empty()) {
      add_seal(name.root);
    } else if (observation.state == Observation::State::Missing) {
      add_missing(name);
    } else {
      add_file(name, observation);
    }
  }

  void add_seal(std::uint16_t root) {
    if (!sealed_.insert(root).second) return;
    const std::string& seal = places_.roots[root].seal;
    const auto seen = digests_.look(places_.path_of(root, seal));
    if (!seen) {
      out_.not_cacheable = "the seal " + seal + " of " + places_.roots[root].path + " cannot be read";
      return;
    }
    push({root, Closure::State::Sealed, seal, seen->digest, seen->stamp.modified_ns / 1'000'000'000});
  }

  // One absent folder says as much as all the absent files in it: a few dozen questions at the next lookup, not
  // thousands.
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
    const Closure::Item item{name.root, Closure::State::Absent, shortest, {}, 0};
    if (is_program(item) && !out_.closure.timed) return;
    push(item);
    struct stat status;
    if (stat(places_.path_of(name.root, shortest).c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) {
      out_.not_cacheable = name.name + " appeared while the compiler ran";
    }
  }

  void add_file(const Name& name, const Observation& observation) {
    const std::string path = places_.path_of(name.root, name.name);
    const auto seen = digests_.look(path);
    if (!seen || !(seen->stamp == observation.stamp)) {
      out_.not_cacheable = path + " changed while the compiler ran";
      return;
    }
    const std::int64_t modified_s = seen->stamp.modified_ns / 1'000'000'000;
    // A file that was asked for and not read, being one with a file that was: its guard or its `#pragma once` kept the
    // compiler from reading the same text again. With other content it would have been read.
    const bool is_link = observation.state == Observation::State::Found && is_read(observation.stamp);
    if (observation.state == Observation::State::Found && !is_link) {
      push({name.root, Closure::State::Present, name.name, {}, modified_s});
      return;
    }
    if (observation.stamp.changed_ns > observation.asked_ns - (on_network_ ? kNetworkTick : kTick).count()) {
      out_.not_cacheable = path + " changed as the compiler started";
      return;
    }
    push({name.root, Closure::State::Read, name.name, seen->digest, modified_s});
    if (is_link) return;
    read_.push_back(observation.path);
    if (!is_vendors(name)) {
      scan(path);
    } else {
      read_vendor_ = true;
    }
  }

  bool is_vendors(const Name& name) const {
    if (name.root < places_.roots.size()) return vendor_[name.root];
    return std::any_of(vendor_folders_.begin(), vendor_folders_.end(),
                       [&](const std::string& folder) { return name.name.starts_with(folder); });
  }

  bool is_read(const FileStamp& stamp) const { return read_inodes_.contains(inode_of(stamp)); }

  // Equal content is rare, so the texts are read only there.
  void find_twins() {
    std::map<Digest, std::vector<std::uint32_t>> same;
    for (std::uint32_t i = 0; i < out_.closure.items.size(); ++i) {
      if (out_.closure.items[i].state == Closure::State::Read) same[out_.closure.items[i].digest].push_back(i);
    }
    for (const auto& [digest, members] : same) {
      if (members.size() < 2) continue;
      const auto path = [&](std::uint32_t i) {
        return places_.path_of(out_.closure.items[i].root, out_.closure.items[i].name);
      };
      const auto text = read_file(path(members[0]));
      if (!text || !*text || (*text)->view().find("once") == std::string_view::npos) continue;
      for (std::size_t second = 1; second < members.size(); ++second) {
        const auto stamp = stamp_of(path(members[second]).c_str());
        for (std::size_t first = 0; first < second; ++first) {
          const auto other = stamp_of(path(members[first]).c_str());
          const bool one_file = stamp && other && inode_of(*stamp) == inode_of(*other);
          out_.closure.twins.push_back({members[first], members[second], one_file});
        }
      }
    }
  }

  // An include by absolute path looks like one through the root that it lies in, so the root must stay where it is.
  void note_names(std::string_view text) {
    named_by_text_ = named_by_text_ || could_name_its_reader(text);
    for (const std::string& prefix : prefixes_) {
      named_by_text_ = named_by_text_ || (prefix.starts_with('/') && text.find(prefix) != std::string_view::npos);
    }
  }

  void scan(const std::string& path) {
    const auto text = read_file(path);
    if (!text || !*text) {
      out_.not_cacheable = path + " cannot be read again";
      return;
    }
    if (const std::string_view macro = time_macro((*text)->view()); !macro.empty()) {
      out_.not_cacheable = path + " uses " + std::string(macro);
    }
    named_by_text_ = named_by_text_ || could_name_its_file((*text)->view());
    note_names((*text)->view());
  }

  // A path in the output ends in a slash and a name: that is what is searched for, so that a folder called `a` does not
  // match every text with an `a` in it.
  bool named_by_output(std::string_view bytes) const {
    if (read_.empty()) return false;
    // LTO-IR packs its texts by bits, where no search finds them.
    if (recipe_.target.form == Form::LtoIr && read_vendor_) return true;
    std::unordered_set<std::string> folders;
    for (const std::string& path : read_) {
      if (const auto slash = path.rfind('/'); slash != std::string::npos) folders.insert(path.substr(0, slash + 1));
    }
    for (const std::string& folder : folders) {
      if (folder.size() <= 2) continue;
      if (bytes.find(folder) != std::string_view::npos) return true;
      if (recipe_.target.form == Form::Ptx && bytes.find(as_ptx_data(folder)) != std::string_view::npos) return true;
    }
    return false;
  }

  // PTX has texts as lists of numbers: `.b8 text[4] = {104, 46, 104};`
  static std::string as_ptx_data(std::string_view text) {
    std::string list;
    for (const char c : text) list += (list.empty() ? "" : ", ") + std::to_string(static_cast<unsigned char>(c));
    return list;
  }

  void push(Closure::Item item) { out_.closure.items.push_back(std::move(item)); }

  const Recipe& recipe_;
  const Places places_;
  FileDigests& digests_;
  std::vector<std::string> prefixes_;
  std::vector<bool> vendor_;                 // by root
  std::vector<std::string> vendor_folders_;  // outside the roots, each with a slash at its end
  std::unordered_set<std::uint16_t> sealed_;
  std::unordered_set<std::string> absent_;
  std::vector<std::string> read_;
  std::set<Inode> read_inodes_;
  std::unordered_set<std::uint16_t> used_;
  bool read_vendor_ = false;
  bool named_by_text_ = false;
  bool on_network_ = false;
  BuiltClosure out_;
};

}  // namespace

BuiltClosure build_closure(const Recipe& recipe, const std::vector<Observation>& observations, bool debug_paths,
                           std::string_view bytes, FileDigests& digests,
                           const std::vector<std::string>& vendor_folders) {
  return Builder(recipe, digests, vendor_folders).build(observations, debug_paths, bytes);
}

}  // namespace kiln
