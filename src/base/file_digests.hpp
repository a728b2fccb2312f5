#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/mutex.hpp"

namespace kiln {

/// The content digests of files, remembered by (device, inode, size, mtime, ctime) within this process and, given a
/// file to keep them in, between processes. A file whose times are younger than two seconds is digested anew each time,
/// because a second edit within one tick of the file system's clock would not show. Any thread.
///
/// What is remembered is trusted: the memory file must lie in a folder that only this user or root can write to. It is
/// mapped, and true on this host only: where its folder is on a network, or cannot be written to, what is learnt goes
/// to `host_local_directory()` instead, and both are asked.
class FileDigests {
 public:
  /// `memory` is the path of the file to remember in, or empty. Nothing is opened until the first question.
  explicit FileDigests(std::string memory, const Clock& clock = system_clock());
  ~FileDigests();
  FileDigests(const FileDigests&) = delete;
  FileDigests& operator=(const FileDigests&) = delete;

  struct Seen {
    FileStamp stamp;
    Digest digest;
  };
  /// The present content of a regular file, or nothing where there is no such file or it cannot be read: none larger
  /// than a gigabyte is, nor one that grows meanwhile. What is no regular file is not opened. A file is read by one at
  /// a time: others who ask for it meanwhile wait, and find what he has learnt. Of a large one that goes for all
  /// processes of this host, for a few seconds.
  std::optional<Seen> look(const std::string& path);

  /// Writes what was learnt to the memory file, if anything was. Losing it costs a digest later and nothing else.
  Status save();

  /// Has another look at the memory file: whoever saved since has probably digested what is asked for next.
  void reload();

  /// How many files had to be read and digested: for tests and statistics.
  std::size_t digested() const;

 private:
  class Digesting;
  struct Table;  // the memory file
  struct Reading {
    Seen seen;
    bool settled = false;  // neither young nor changed while it was read: it may be remembered
  };

  std::optional<Digest> remembered(const std::string& path, const FileStamp& stamp) KILN_REQUIRES(mutex_);
  std::optional<Reading> read(const std::string& path) const;
  std::optional<Reading> learnt_elsewhere(const std::string& path, const FileStamp& stamp);
  void keep(const std::string& path, const std::optional<Reading>& reading);
  Table* table(std::size_t index) KILN_REQUIRES(mutex_);
  Status save_to(const std::string& memory, const std::vector<std::pair<std::string, Seen>>& learnt);

  const std::string memory_;
  const Clock& clock_;
  mutable Mutex mutex_;
  // The memory file's and the host's own, each opened when it is first asked.
  std::array<std::optional<std::unique_ptr<Table>>, 2> tables_ KILN_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Seen> learnt_ KILN_GUARDED_BY(mutex_);
  std::unordered_set<std::string> digesting_ KILN_GUARDED_BY(mutex_);  // the paths that somebody reads just now
  Condition no_longer_digesting_;
  bool unsaved_ KILN_GUARDED_BY(mutex_) = false;
  std::size_t digested_ KILN_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln
