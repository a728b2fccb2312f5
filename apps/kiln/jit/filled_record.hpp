// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <kiln/result.hpp>

namespace kiln::jit {

/// The paths of the entries that fills placed below a root, and whether the list of another publisher named them. They
/// are in the file `.kiln-filled` of the root (docs/internals/formats/jit.md), so that they are removed with it. What
/// other publishers signed is not published again: it must not become this user's own
/// (docs/internals/decisions/0011.md). Not thread-safe; several processes can add to one file.
class FilledRecord {
 public:
  /// Reads the record of an open root; empty if there is none. Returns Code::Denied if others can have written it, and
  /// Code::Unsupported if it is of another version.
  static Result<FilledRecord> read(int root);

  /// Adds an entry, before it is placed, so that a killed fill leaves no entry that the record lacks.
  Status add(int root, const std::string& path, bool of_others);
  /// Removes an entry that could not be placed: what the system compiles instead is this user's own. If the record
  /// cannot be written, that is not published.
  void remove(int root, const std::string& path);
  /// Returns whether a fill placed the entry.
  bool has(std::string_view path) const { return entries_.find(path) != entries_.end(); }
  /// Returns whether a fill placed the entry and another publisher's list named it.
  bool is_of_others(std::string_view path) const;

 private:
  Status append(int root, std::string_view state, const std::string& path);

  std::map<std::string, bool, std::less<>> entries_;  // path → whether it is of others
  bool exists_ = false;
};

}  // namespace kiln::jit
