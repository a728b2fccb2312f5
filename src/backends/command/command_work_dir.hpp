// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <kiln/result.hpp>
#include <kiln/unit.hpp>

#include "base/files/files.hpp"
#include "base/files/temporary_directory.hpp"

namespace kiln {

/// The private directory of one compiler run. It contains the unit's source, its in-memory headers and the compiler's
/// output. The destructor removes it; `remove_stale` removes the directories of processes that were killed.
class CommandWorkDir {
 public:
  /// Creates the directory below `parent` and writes the unit's files. With `by_descriptor`, the source is a link to a
  /// descriptor that the program inherits. nvcc puts a hash of the source's real path into the names of symbols in
  /// anonymous namespaces. An in-memory file has no such path, so that all directories and hosts produce the same
  /// bytes. Without /proc the source is a file.
  static Result<CommandWorkDir> make(const std::string& parent, const Unit& unit, bool by_descriptor);

  /// Returns the program's working directory. All other names are relative to it.
  std::string working_directory() const { return directory_.path() + "/work"; }
  std::string temporary() const { return directory_.path() + "/tmp"; }
  const std::string& source() const { return source_; }
  static constexpr const char* kOutput = "../out/output";
  static constexpr const char* kDepfile = "../out/depfile";
  Result<std::optional<Bytes>> output() const { return read_file(working_directory() + "/" + kOutput); }
  Result<std::optional<Bytes>> depfile() const { return read_file(working_directory() + "/" + kDepfile); }

  /// Returns the source's descriptor, which the program must inherit as `kSourceDescriptor`; negative if the source is
  /// a file.
  int descriptor() const { return in_memory_.get(); }
  static constexpr int kSourceDescriptor = 3;

  /// Removes directories that killed processes of this user left below `parent`.
  static void remove_stale(const std::string& parent);

 private:
  explicit CommandWorkDir(TemporaryDirectory directory) : directory_(std::move(directory)) {}
  Status write_source(const Unit& unit, bool by_descriptor);

  TemporaryDirectory directory_;
  std::string source_;
  Fd in_memory_;
};

/// Checks that the unit's name and the names of its headers are valid file names. The error names the invalid one.
Status check_file_names(const Unit& unit);

}  // namespace kiln
