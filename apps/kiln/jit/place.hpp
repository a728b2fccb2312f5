// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <kiln/result.hpp>

#include "apps/kiln/jit/entry_pack.hpp"
#include "apps/kiln/jit/rule.hpp"
#include "base/clock.hpp"
#include "base/files/files.hpp"
#include "base/files/temporary_directory.hpp"

namespace kiln::jit {

/// Opens the root of a system. It must be a directory of this user to which no other user can write, on a path that no
/// other user can change. If it is missing and `create` is true, it is created with mode 0700. Returns
/// Code::Unavailable if it is missing.
Result<Fd> open_root(const std::string& root, bool create);

/// Creates the root of a system if it is missing, and returns an error if this user cannot write to it.
Status check_writable_root(const std::string& root);

/// Writes entries below a root. An entry is written to a temporary directory in the root and appears under its name by
/// a rename that does not replace anything. Follows no link below the root. Not thread-safe.
class EntryPlacer {
 public:
  /// `path` is the path of the root, for messages and for rewritten files.
  EntryPlacer(Fd root, std::string path) : root_(std::move(root)), root_path_(std::move(path)) {}
  EntryPlacer(const EntryPlacer&) = delete;
  EntryPlacer& operator=(const EntryPlacer&) = delete;

  int root() const { return root_.get(); }
  /// Returns whether anything exists under the path of an entry.
  bool is_present(const std::string& path) const;
  /// Places an entry that the rule accepts. Returns false if it exists already; then nothing is changed. Returns
  /// Code::TimedOut if the deadline ends before all its files are written.
  Result<bool> place(const std::string& path, const EntryPack& pack, const Deadline& deadline);

 private:
  Status make_temporary();
  Status write_file(int directory, const PackedFile& file, const std::string& name) const;
  Result<bool> place_folder(int parent, const std::string& entry_name, const EntryPack& pack, const Deadline& deadline);
  Result<bool> place_file(int parent, const std::string& name, const PackedFile& file);

  Fd root_;
  std::string root_path_;
  Fd unpacked_;  // the temporary directory
  std::optional<TemporaryDirectory> temporary_;
  unsigned count_ = 0;
};

/// Checks that a rule accepts an unpacked entry: its kind, the required files, and rewritten files only where the rule
/// allows them.
Status check_pack(const Rule& rule, const std::string& path, const EntryPack& pack);

/// Prefix of the names of temporary directories in a root.
inline constexpr std::string_view kTemporaryPrefix = ".kiln-fill-";

}  // namespace kiln::jit
