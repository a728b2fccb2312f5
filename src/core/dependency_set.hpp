// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>
#include <kiln/unit.hpp>

#include "base/files/file_digest_cache.hpp"

namespace kiln {

/// Resolves a path against a working directory. `/proc/self/cwd`, which build tools use, means that directory
/// regardless of the calling process.
std::string locate(const std::string& working_directory, std::string_view path);

/// The paths against which the names of a dependency set are resolved on this machine.
struct PathRoots {
  std::string working_directory;   ///< absolute
  std::vector<IncludeRoot> roots;  ///< in the order of the unit's include roots

  std::string path_of(std::uint16_t root, std::string_view name) const;
};

/// The files that a compile read, in the order of first access, and the paths at which it found no file. Names are
/// relative to a root, so another checkout or another host with the same files has the same dependency set.
struct DependencySet {
  static constexpr std::uint16_t kWorkingDirectory = 0xfffe;
  static constexpr std::uint16_t kAbsolute = 0xffff;

  enum class State : std::uint8_t {
    Read = 1,  ///< a file with this content
    Absent =
        2,  ///< neither a file nor a directory at this name; a name that ends with a slash covers all names below it
    Present = 3,   ///< a file with any content: its existence was checked, but it was not read
    Sentinel = 4,  ///< a root with a sentinel: `digest` is the sentinel's and covers every file read and every file
                   ///< missing in the root
  };
  struct Dependency {
    std::uint16_t root = kAbsolute;
    State state = State::Read;
    std::string name;
    Digest digest{};              ///< for Read and Sealed
    std::int64_t modified_s = 0;  ///< modification time in seconds, if `timed`; else 0
    friend bool operator==(const Dependency&, const Dependency&) = default;
  };

  /// Two files that were read, have the same content and contain `#pragma once`. The compiler reads the second only if
  /// it is a different file and not a link to the first, so this relation is an input too.
  struct DuplicateFiles {
    std::uint32_t first = 0;  ///< indices into `items`
    std::uint32_t second = 0;
    bool same_file = false;
    friend bool operator==(const DuplicateFiles&, const DuplicateFiles&) = default;
  };
  /// Include root `inner` is the directory `subpath` in `outer` (a root or the working directory). A file below both
  /// has two names, the dependency set stores only one of them, and which one the compiler used is unknown.
  struct NestedRoot {
    std::uint16_t outer = kAbsolute;
    std::uint16_t inner = kAbsolute;
    std::string subpath;
    friend bool operator==(const NestedRoot&, const NestedRoot&) = default;
  };

  std::vector<Dependency> items;
  std::vector<DuplicateFiles> duplicate_files;
  std::vector<NestedRoot> nested_roots;
  /// True if the output contains file paths (debug information, `__FILE__`). `working_directory` and `root_paths` then
  /// hold the paths as given.
  bool embeds_paths = false;
  /// True if the output contains modification times too: debug information stores them, in seconds.
  bool embeds_mtimes = false;
  std::string working_directory;
  std::vector<std::string> root_paths;

  bool empty() const { return items.empty() && nested_roots.empty() && !embeds_paths && !embeds_mtimes; }
  /// Returns whether the set is valid on this host only: it contains paths or times, or files below no root.
  bool is_host_specific() const;
  friend bool operator==(const DependencySet&, const DependencySet&) = default;

  /// Returns the canonical bytes, which are hashed into an ArtifactKey and written to stores
  /// (docs/internals/formats/cache-folder.md).
  std::string encode() const;
  static Result<DependencySet> decode(std::string_view bytes);
};

/// A difference between the current files and a dependency set.
struct Mismatch {
  DependencySet::Dependency expected;
  std::string path;              ///< absolute
  std::optional<Digest> actual;  ///< digest of the current content, if the file exists
  std::string description;       ///< human-readable
};

/// Returns which include roots are nested in one another, judging by their paths only.
std::vector<DependencySet::NestedRoot> find_nested_roots(const PathRoots& places);

/// Returns the first file that does not match the dependency set, or nothing if all match. `requested_at` as in
/// `FileDigestCache::lookup`.
std::optional<Mismatch> check(const DependencySet& dependency_set, const PathRoots& places, FileDigestCache& digests,
                              std::optional<std::chrono::nanoseconds> requested_at = std::nullopt);

/// The two parts of `check`, for callers that know part of the result: `check_dependencies` checks the items with these
/// indices, `check_relations` checks the relations between items and paths.
std::optional<Mismatch> check_dependencies(const DependencySet& dependency_set, std::span<const std::uint32_t> which,
                                           const PathRoots& places, FileDigestCache& digests,
                                           std::optional<std::chrono::nanoseconds> requested_at);
std::optional<Mismatch> check_relations(const DependencySet& dependency_set, const PathRoots& places);

/// Returns every file that does not match, for reports; `check` stops at the first.
std::vector<Mismatch> mismatches(const DependencySet& dependency_set, const PathRoots& places,
                                 FileDigestCache& digests);

}  // namespace kiln
