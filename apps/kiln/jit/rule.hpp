// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

#include "apps/kiln/jit/path_pattern.hpp"
#include "apps/kiln/jit/version_range.hpp"

namespace kiln::jit {

/// How the cache of one system looks on disk, for a range of its versions: a `[[rule]]` table of a TOML file
/// (docs/reference/jit-rules.md). A value type.
struct Rule {
  enum class Kind : unsigned char { Folder, File };
  enum class Evidence : unsigned char {
    Run,    ///< tried with the releases that the page of the system names
    Source  ///< read from the source of the system only
  };

  std::string system;                      ///< name of the system, such as tilelang
  VersionRange versions;                   ///< versions of the first distribution to which the rule applies
  std::vector<std::string> distributions;  ///< distributions whose versions are part of the environment
  std::string variable;                    ///< environment variable that names the cache; empty if there is none
  std::string subdirectory;                ///< path from the variable's value to the root; empty if they are the same
  std::string root;                        ///< root if the variable is not set; `~/` is the home directory
  Kind kind = Kind::Folder;
  std::vector<PathPattern> entries;  ///< paths of entries below the root
  std::vector<PathPattern> whole;    ///< each matches at least one file of a complete entry
  std::vector<PathPattern> never;    ///< files that are not part of an entry
  std::vector<PathPattern> rewrite;  ///< files in which the path of the root is replaced
  bool host_code = false;            ///< entries contain code or data that the host executes: .so, pickles, Python
  Evidence evidence = Evidence::Run;

  /// Returns whether a path below the root is the path of an entry.
  bool is_entry(std::string_view path) const;
  /// Returns whether a file without the path of its root is not valid: the entry needs the file, and the path is
  /// replaced in it.
  bool must_contain_root(std::string_view path) const;
  /// Returns the root for a value of the variable; empty means that the variable is not set.
  std::string root_for(const std::string& value, const std::string& home) const;
};

/// Returns whether one of the patterns matches the path of a file in an entry.
bool any_matches(const std::vector<PathPattern>& patterns, std::string_view path);

/// Parses the rules of a file. Rejects unknown members, invalid patterns and ranges, absolute paths and two rules of
/// one system whose ranges have the same text. An error begins with `name` and the position.
Result<std::vector<Rule>> parse_rules(std::string_view text, const std::string& name);

/// Returns the rules that the program contains (apps/kiln/jit/rules), and those of the TOML files in `directory` before
/// them if it is not empty. Such a directory must belong to this user or root.
Result<std::vector<Rule>> load_rules(const std::string& directory);

}  // namespace kiln::jit
