#pragma once

#include <string>

#include <kiln/result.hpp>
#include <kiln/unit.hpp>

#include "base/files.hpp"

namespace kiln {

/// The private folder of one run of a compiler: the unit's source and its headers from memory, and room for what the
/// compiler makes. It is removed at the end, whichever way that comes; `sweep` removes those of processes that were
/// killed.
class CommandFolder {
 public:
  /// Below `parent`, with the unit's files written. `by_descriptor` makes the source a link to a descriptor that the
  /// program gets: nvcc puts a hash of the source's real path into the names of what is in anonymous namespaces, and a
  /// file in memory has no such path, so that all folders and hosts give the same bytes. Without /proc it is a file.
  static Result<CommandFolder> make(const std::string& parent, const Unit& unit, bool by_descriptor);
  CommandFolder(CommandFolder&&) noexcept = default;
  CommandFolder& operator=(CommandFolder&&) = delete;
  ~CommandFolder();

  /// Where the program works. All other names are relative to it.
  std::string work() const { return path_ + "/work"; }
  std::string temporary() const { return path_ + "/tmp"; }
  const std::string& source() const { return source_; }
  static constexpr const char* kOutput = "../out/output";
  static constexpr const char* kDepfile = "../out/depfile";
  Result<std::optional<Bytes>> output() const { return read_file(work() + "/" + kOutput); }
  Result<std::optional<Bytes>> depfile() const { return read_file(work() + "/" + kDepfile); }

  /// The source's descriptor, which the program must have under `kSourceDescriptor`; negative where it is a file.
  int descriptor() const { return in_memory_.get(); }
  static constexpr int kSourceDescriptor = 3;

  /// Removes what killed processes of this user have left below `parent`.
  static void sweep(const std::string& parent);

 private:
  CommandFolder(std::string path, Fd lock);
  Status write_source(const Unit& unit, bool by_descriptor);

  std::string path_;
  Fd lock_;  // of the folder itself: whoever can take it knows that the folder's owner is gone
  std::string source_;
  Fd in_memory_;
};

/// Whether a unit's name and the names of its headers can be files of a folder; an error that says which cannot.
Status check_file_names(const Unit& unit);

}  // namespace kiln
