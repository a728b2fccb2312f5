// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kiln/bytes.hpp>
#include <kiln/result.hpp>

#include "apps/kiln/jit/rule.hpp"
#include "base/files/files.hpp"

namespace kiln::jit {

/// One file of an entry as a look at the root finds it.
struct ScannedFile {
  std::string path;  ///< relative to the entry; for an entry that is one file, its name
  bool executable = false;
  FileStamp stamp;

  friend bool operator==(const ScannedFile&, const ScannedFile&) = default;
};

/// Returns the paths below an open root that match the entry patterns of a rule, in order, at most `kMaxListLines`.
/// Follows no link.
std::vector<std::string> find_entries(int root, const Rule& rule);

/// Returns the files of an entry in the order of their paths, without those that the rule leaves out. Returns
/// Code::Denied if it contains a link, a special file, a file of another user or that every user can write, or too many
/// files.
Result<std::vector<ScannedFile>> scan_entry(int root, const Rule& rule, const std::string& path);

/// Reads a file of an entry. Returns Code::Unavailable if it is not the file that was scanned or if it changed.
Result<Bytes> read_scanned(int root, const Rule& rule, const std::string& entry, const ScannedFile& file);

}  // namespace kiln::jit
