#include "compile/command_closure.hpp"

#include <sys/stat.h>

#include <set>
#include <unordered_set>

#include "base/error.hpp"
#include "base/files.hpp"
#include "compile/include_names.hpp"

namespace kiln {
namespace {

// A kernel that includes CUB's block_reduce.cuh gives 5,465 with nvcc 13.0.
constexpr std::size_t kMostObservations = 400'000;

class Search {
 public:
  Search(const Recipe& recipe, const std::vector<std::string>& folders, std::chrono::nanoseconds started)
      : recipe_(recipe), started_ns_(started.count()) {
    for (const IncludeRoot& root : recipe.unit.include_roots()) {
      roots_.push_back(tidy_path(join_path(recipe.working_directory, root.path)));
    }
    folders_ = roots_;
    for (const std::string& folder : folders) folders_.push_back(tidy_path(folder));
    std::set<std::pair<dev_t, ino_t>> known;
    for (const std::string& folder : folders_) {
      struct stat status;
      const bool there = stat(folder.c_str(), &status) == 0;
      if (!there || known.emplace(status.st_dev, status.st_ino).second) searched_.push_back(folder);
    }
  }

  Result<std::vector<Observation>> observe(const std::vector<std::string>& dependencies) {
    std::vector<std::string> read;
    for (const std::string& path : dependencies) {
      if (path.starts_with('/')) {
        read.push_back(tidy_path(path));
      } else if (path.find("..") != std::string::npos) {
        return failure(Code::Unsupported, "it reads " + path + " beside the folder that it is compiled in");
      }
    }
    for (const std::string& path : read) add_read(path);
    scan(recipe_.unit.source(), {});
    scan(recipe_.unit.preamble(), {});
    for (const Header& header : recipe_.unit.headers()) scan(header.content, {});
    for (const std::string& path : read) {
      const auto text = read_file(path);
      if (text && *text) scan((*text)->view(), folder_of(path));
    }
    for (const std::string& folder : computing_) {
      for (const std::string& name : names_) probe(join_path(folder, name));
    }
    for (const std::string& name : names_) {
      for (const std::string& folder : searched_) probe(join_path(folder, name));
      if (out_.size() > kMostObservations) return failure(Code::Unsupported, "it could read too many files");
    }
    return std::move(out_);
  }

 private:
  // The closure names what is below an include root as the unit spells that root.
  std::string as_spelt(const std::string& path) const {
    std::size_t best = roots_.size();
    for (std::size_t i = 0; i < roots_.size(); ++i) {
      const bool below = path.starts_with(roots_[i]) && path.size() > roots_[i].size() && path[roots_[i].size()] == '/';
      if (below && (best == roots_.size() || roots_[i].size() > roots_[best].size())) best = i;
    }
    if (best == roots_.size()) return path;
    return join_path(recipe_.unit.include_roots()[best].path, path.substr(roots_[best].size() + 1));
  }

  void add(const std::string& path, Observation::State state, const FileStamp& stamp, bool changed) {
    Observation observation;
    observation.path = as_spelt(path);
    observation.state = state;
    observation.both = changed;
    observation.stamp = stamp;
    observation.asked_ns = started_ns_;
    out_.push_back(std::move(observation));
  }

  void add_read(const std::string& path) {
    if (!seen_.insert(path).second) return;
    const auto stamp = stamp_of(path.c_str());
    add(path, Observation::State::Read, stamp.value_or(FileStamp()), !stamp.has_value());
    // By which name it was found is not known where one folder lies in another: any.
    for (const std::string& folder : folders_) {
      if (path.size() > folder.size() + 1 && path.starts_with(folder) && path[folder.size()] == '/') {
        names_.insert(path.substr(folder.size() + 1));
      }
    }
  }

  // `folder` is the one that the text's file is in; empty for the unit's own texts, whose folder is not on any path.
  void scan(std::string_view text, const std::string& folder) {
    const IncludeNames found = include_names(text);
    for (const IncludeNames::Name& name : found.names) {
      names_.insert(name.name);
      if (name.quoted && !folder.empty()) probe(join_path(folder, name.name));
    }
    if (found.computed && !folder.empty()) computing_.insert(folder);
  }

  void probe(const std::string& spelt) {
    const std::string path = tidy_path(spelt);
    const std::string folder = folder_of(path);
    // Of a folder that is not there one name is enough: the closure then says that of the folder.
    if (absent_.contains(folder) || !seen_.insert(path).second) return;
    if (const auto stamp = stamp_of(path.c_str())) {
      add(path, Observation::State::Found, *stamp, stamp->changed_ns >= started_ns_);
    } else {
      add(path, Observation::State::Missing, {}, false);
      if (!is_folder(folder)) absent_.insert(folder);
    }
  }

  const Recipe& recipe_;
  const std::int64_t started_ns_;
  std::vector<std::string> roots_;
  std::vector<std::string> folders_;   // the roots, and where the program looks besides
  std::vector<std::string> searched_;  // of these each once, by the first of its names
  std::set<std::string> names_;      // by which files may be included; sorted, so that closures are the same each time
  std::set<std::string> computing_;  // folders of files whose includes macros name
  std::unordered_set<std::string> seen_;
  std::unordered_set<std::string> absent_;  // folders
  std::vector<Observation> out_;
};

}  // namespace

Result<std::vector<Observation>> observations_of(const Recipe& recipe, const std::vector<std::string>& dependencies,
                                                 const std::vector<std::string>& folders,
                                                 std::chrono::nanoseconds started) {
  return Search(recipe, folders, started).observe(dependencies);
}

}  // namespace kiln
