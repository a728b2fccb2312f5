// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "backends/text_facts.hpp"
#include "base/files/files.hpp"
#include "base/mutex.hpp"

namespace kiln {

/// The content of a file as the compiler read it.
struct FileContent {
  Digest digest{};    ///< digest of the bytes that the compiler read
  TextFacts facts{};  ///< facts about the same bytes
  /// Reason why the digest does not describe the bytes that the compiler read; empty if it does.
  std::string problem{};
};

/// An access of a compiler to one path of the file system.
struct FileAccess {
  enum class State : std::uint8_t { Missing = 1, Exists = 2, Read = 3 };
  std::string path{};  ///< path as the compiler gave it
  State state = State::Missing;
  bool inconsistent = false;  ///< true if two accesses had different results: the file changed while the compiler ran
  FileStamp stamp{};          ///< stamp of the first access, for Found and Read
  FileContent content{};      ///< content, for Read
};

/// Records the file accesses of a compiler, in the order of the first access to each path. Thread-safe.
class FileAccessRecorder {
 public:
  FileAccessRecorder() = default;
  /// Creates a recorder that ignores the output file `ours` and takes a snapshot when it is written.
  explicit FileAccessRecorder(std::string ours) : output_path_(std::move(ours)) {}

  void missing(std::string_view path) { note({std::string(path)}); }
  void found(std::string_view path, const FileStamp& stamp) {
    note({std::string(path), FileAccess::State::Exists, false, stamp});
  }
  void read(std::string_view path, const FileStamp& stamp, FileContent content) {
    note({std::string(path), FileAccess::State::Read, false, stamp, std::move(content)});
  }

  /// Records that the compiler starts to write a file. All accesses to this file, earlier and later, are then ignored.
  void writing(std::string_view path);
  /// Returns true if a file is an input: neither the output file nor a file that the compiler wrote.
  bool is_input(std::string_view path) const;

  std::vector<FileAccess> take();
  /// Returns the accesses recorded before the output file was written; nothing if it was not written.
  std::optional<std::vector<FileAccess>> take_until_output();

 private:
  void note(FileAccess observation);
  std::vector<FileAccess> noted() const KILN_REQUIRES(mutex_);

  const std::string output_path_;
  mutable Mutex mutex_;
  std::optional<std::vector<FileAccess>> before_writing_ KILN_GUARDED_BY(mutex_);
  std::vector<FileAccess> observations_ KILN_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::size_t> index_ KILN_GUARDED_BY(mutex_);
  std::unordered_set<std::string> written_ KILN_GUARDED_BY(mutex_);
};

/// Merges two lists of accesses as if one recorder had recorded both, `second` after `first`.
std::vector<FileAccess> merge_accesses(std::vector<FileAccess> first, const std::vector<FileAccess>& second);

std::string encode(const std::vector<FileAccess>& observations);
Result<std::vector<FileAccess>> decode_observations(std::string_view bytes);

}  // namespace kiln
