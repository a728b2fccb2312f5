// SPDX-License-Identifier: Apache-2.0
#include "backends/command/command_dependencies.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <set>
#include <unordered_set>

#include "backends/command/include_scan.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

// A kernel that includes CUB's block_reduce.cuh results in 5,465 accesses with nvcc 13.0.
constexpr std::size_t kMaxObservations = 400'000;

// Maximum number of files read before a run. The result of a project with more headers on a network is not cached.
constexpr std::size_t kMaxPreceding = 20'000;

using std::chrono::nanoseconds;
constexpr nanoseconds kSecond = std::chrono::seconds(1);
// Clock step of file systems that use the kernel's clock, which advances at least 100 times per second.
constexpr nanoseconds kFineStep = std::chrono::milliseconds(20);
// Clock step of file systems that store whole seconds (ext4 with small inodes) or every second one (FAT).
constexpr nanoseconds kCoarseStep = std::chrono::seconds(2);

class Search {
 public:
  Search(const Recipe& recipe, const std::vector<std::string>& directories, const BeforeRun& before,
         const IsOnNetwork& on_network)
      : recipe_(recipe), before_(before), on_network_(on_network), scanner_(recipe) {
    for (const IncludeRoot& root : recipe.unit.include_roots()) {
      roots_.push_back(normalize_path(locate(recipe.working_directory, root.path)));
    }
    directories_ = roots_;
    for (const std::string& directory : directories) directories_.push_back(normalize_path(directory));
    std::set<std::pair<dev_t, ino_t>> known;
    for (const std::string& directory : directories_) {
      struct stat status;
      const bool there = stat(directory.c_str(), &status) == 0;
      if (!there || known.emplace(status.st_dev, status.st_ino).second) searched_.push_back(directory);
    }
  }

  Result<std::vector<FileAccess>> observe(const std::vector<std::string>& dependencies) {
    std::vector<std::string> read;
    for (const std::string& path : dependencies) {
      if (path.starts_with('/')) {
        read.push_back(normalize_path(path));
      } else if (path.find("..") != std::string::npos) {
        return make_error(Code::Unsupported, "the compiler reads " + path + " outside its working directory");
      }
    }
    for (const IncludeRoot& root : recipe_.unit.include_roots()) {
      if (!root.sentinel.empty())
        add_read(normalize_path(join_path(locate(recipe_.working_directory, root.path), root.sentinel)));
    }
    for (const std::string& path : read) add_read(path);
    // Runs after `add_read`: a file that was read must not be recorded as merely found.
    scan(recipe_.unit.source(), {});
    scan(recipe_.unit.preamble(), {});
    for (const Header& header : recipe_.unit.headers()) scan(header.content, {});
    for (const auto& [path, text] : texts_) scan(text.view(), parent_path(path));
    for (const std::string& directory : computing_) {
      for (const std::string& name : names_) probe(join_path(directory, name));
    }
    for (const std::string& name : names_) {
      for (const std::string& directory : searched_) probe(join_path(directory, name));
      if (out_.size() > kMaxObservations) return make_error(Code::Unsupported, "too many possible input files");
    }
    return std::move(out_);
  }

 private:
  // Returns the path with its include root as the unit gives it. The dependency set uses that form.
  std::string as_spelled(const std::string& path) const {
    std::size_t best = roots_.size();
    for (std::size_t i = 0; i < roots_.size(); ++i) {
      const bool below = path.starts_with(roots_[i]) && path.size() > roots_[i].size() && path[roots_[i].size()] == '/';
      if (below && (best == roots_.size() || roots_[i].size() > roots_[best].size())) best = i;
    }
    if (best == roots_.size()) return path;
    return join_path(recipe_.unit.include_roots()[best].path, path.substr(roots_[best].size() + 1));
  }

  void add(const std::string& path, FileAccess::State state, const FileStamp& stamp, FileContent content = {}) {
    out_.push_back({as_spelled(path), state, false, stamp, std::move(content)});
  }

  void add_read(const std::string& path) {
    if (!seen_.insert(path).second) return;
    const auto stamp = stamp_of(path.c_str());
    const auto text = stamp ? read_file(path) : Result<std::optional<Bytes>>(std::nullopt);
    FileContent content;
    if (!text || !*text) {
      content.problem = stamp ? "cannot be read after the compile" : "changed while the compiler ran";
    } else {
      content.digest = sha256((*text)->view());
      content.facts = scanner_.facts_of(as_spelled(path), (*text)->view());
      content.problem = unproven_reason(path, *stamp, content.digest);
      texts_.emplace_back(path, **text);
    }
    add(path, FileAccess::State::Read, stamp.value_or(FileStamp()), std::move(content));
    // If one directory contains another, the include name is ambiguous. All possible names count.
    for (const std::string& directory : directories_) {
      if (path.size() > directory.size() + 1 && path.starts_with(directory) && path[directory.size()] == '/') {
        names_.insert(path.substr(directory.size() + 1));
      }
    }
  }

  // Returns the reason why the content that was just read can differ from the content that the program read.
  std::string unproven_reason(const std::string& path, const FileStamp& stamp, const Digest& digest) const {
    const auto known = before_.digests.find(path);
    if (known != before_.digests.end() && known->second != digest) return "changed while the compiler ran";
    if (!on_network_(path)) {
      const auto now = stamp_of(path.c_str());
      return now && *now == stamp ? unsettled_reason(stamp, before_.started) : "changed while it was read";
    }
    if (known != before_.digests.end()) return {};
    return "is on a network file system and was not read before the compile";
  }

  // `directory` contains the file of the text. It is empty for the unit's texts, whose directory is on no search path.
  void scan(std::string_view text, const std::string& directory) {
    const IncludeScan found = scan_includes(text);
    for (const IncludeScan::Name& name : found.names) {
      names_.insert(name.name);
      if (name.quoted && !directory.empty()) probe(join_path(directory, name.name));
    }
    if (found.computed && !directory.empty()) computing_.insert(directory);
  }

  void probe(const std::string& spelled) {
    const std::string path = normalize_path(spelled);
    const std::string directory = parent_path(path);
    // For a missing directory one name is enough: the dependency set then records the missing directory.
    if (absent_.contains(directory) || !seen_.insert(path).second) return;
    if (const auto stamp = stamp_of(path.c_str())) {
      const bool is_new = stamp->changed_ns >= before_.started.count();
      add(path, FileAccess::State::Exists, *stamp);
      out_.back().inconsistent = is_new;
    } else {
      add(path, FileAccess::State::Missing, {});
      if (!is_directory(directory)) absent_.insert(directory);
    }
  }

  const Recipe& recipe_;
  const BeforeRun& before_;
  const IsOnNetwork& on_network_;
  const TextScanner scanner_;
  std::vector<std::string> roots_;
  std::vector<std::string> directories_;  // the roots and the other directories that the program searches
  std::vector<std::string> searched_;     // the same directories without duplicates, each under its first name
  std::set<std::string> names_;           // names by which files may be included; sorted, so that dependency sets are
                                          // reproducible
  std::set<std::string> computing_;       // directories of files that have includes named by macros
  std::unordered_set<std::string> seen_;
  std::unordered_set<std::string> absent_;            // missing directories
  std::vector<std::pair<std::string, Bytes>> texts_;  // texts that were read, with their paths
  std::vector<FileAccess> out_;
};

// Follows the includes of texts through the unit's include roots and the other search directories on networks. It does
// not read the compiler's directories on a local disk; for these, the times of the files are checked.
class Forecast {
 public:
  Forecast(const Recipe& recipe, const std::vector<std::string>& directories, const IsOnNetwork& on_network) {
    for (const IncludeRoot& root : recipe.unit.include_roots()) {
      directories_.push_back(normalize_path(locate(recipe.working_directory, root.path)));
    }
    for (const std::string& directory : directories) {
      if (on_network(directory)) directories_.push_back(normalize_path(directory));
    }
    for (std::size_t i = 0; i < recipe.unit.include_roots().size(); ++i) {
      const std::string& sentinel = recipe.unit.include_roots()[i].sentinel;
      if (!sentinel.empty()) waiting_.push_back(join_path(directories_[i], sentinel));
    }
  }

  std::unordered_map<std::string, Digest> follow(const Recipe& recipe) {
    scan(recipe.unit.source(), {});
    scan(recipe.unit.preamble(), {});
    for (const Header& header : recipe.unit.headers()) scan(header.content, {});
    while (!waiting_.empty() && seen_.size() < kMaxPreceding) {
      const std::string path = normalize_path(waiting_.back());
      waiting_.pop_back();
      if (!seen_.insert(path).second) continue;
      const auto text = read_file(path);
      if (!text || !*text) continue;
      digests_.emplace(path, sha256((*text)->view()));
      scan((*text)->view(), parent_path(path));
    }
    return std::move(digests_);
  }

 private:
  void scan(std::string_view text, const std::string& directory) {
    for (const IncludeScan::Name& name : scan_includes(text).names) {
      if (name.quoted && !directory.empty()) add(join_path(directory, name.name));
      if (!names_.insert(name.name).second) continue;
      for (const std::string& searched : directories_) add(join_path(searched, name.name));
    }
  }
  void add(std::string path) {
    if (stamp_of(path.c_str())) waiting_.push_back(std::move(path));
  }

  std::vector<std::string> directories_;
  std::vector<std::string> waiting_;
  std::set<std::string> names_;
  std::unordered_set<std::string> seen_;
  std::unordered_map<std::string, Digest> digests_;
};

}  // namespace

bool is_on_network(const std::string& path) {
  const Fd fd(open(path.c_str(), O_PATH | O_CLOEXEC));
  return fd && is_network_filesystem(fd.get());
}

std::string unsettled_reason(const FileStamp& stamp, nanoseconds started) {
  const bool is_coarse = stamp.modified_ns % kSecond.count() == 0 || stamp.changed_ns % kSecond.count() == 0;
  if (!stamp.is_newer_than(is_coarse ? kCoarseStep : kFineStep, started)) return {};
  return stamp.is_newer_than(nanoseconds(0), started) ? "changed while the compiler ran"
                                                      : "changed as the compiler started";
}

BeforeRun look_before_run(const Recipe& recipe, const std::vector<std::string>& directories,
                          const IsOnNetwork& on_network) {
  BeforeRun before;
  before.digests = Forecast(recipe, directories, on_network).follow(recipe);
  return before;
}

Result<std::vector<FileAccess>> infer_file_accesses(const Recipe& recipe, const std::vector<std::string>& dependencies,
                                                    const std::vector<std::string>& directories,
                                                    const BeforeRun& before, const IsOnNetwork& on_network) {
  return Search(recipe, directories, before, on_network).observe(dependencies);
}

}  // namespace kiln
