#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "base/lock_file.hpp"
#include "compile/file_recorder.hpp"
#include "core/closure.hpp"

namespace kiln {

/// A precompiled header: where it is, and what was read to make it.
struct Pch {
  std::string path;
  std::uint64_t size = 0;
  std::uint64_t checksum = 0;             ///< XXH3 of the file
  Closure closure;                        ///< by content; whoever uses the file checks it first
  std::vector<Observation> observations;  ///< what the compiler asked the file system, in order
};

/// The precompiled headers of this host, in one folder: for each a large file that the compiler writes and reads, and
/// beside it a small one (docs/pch-format.md) that says what it is. They never leave the host: what another host made
/// is not taken, and a folder on a network is no shelf. Any thread, and any process of this user; usable in a child
/// after fork, which makes nothing of what its parent makes. Nothing is opened or made before the first question.
///
/// Like a cache of kiln's it never makes things worse: what cannot be read or written is as if it were not there.
class PchShelf {
 public:
  struct Options {
    std::string folder;                                 ///< absolute: compilers run elsewhere
    std::uint64_t size_bound = std::uint64_t{2} << 30;  ///< of all files together; the least recently used go first
    std::string host;                                   ///< who we are; empty: this machine
  };
  explicit PchShelf(Options options) : options_(std::move(options)) {}
  PchShelf(const PchShelf&) = delete;
  PchShelf& operator=(const PchShelf&) = delete;

  /// What is known under this key, whole as far as its size tells; the content is for the user to check. Counts as a
  /// use. Something that is damaged, of another version or of another host is removed, and `damage` says what it was.
  std::optional<Pch> find(const Digest& key, std::string* damage = nullptr);
  /// Whether somebody on this host has asked this before about the same key, within a month or so.
  bool asked_before(const Digest& key);

  /// Somebody who makes the precompiled header of a key. While it lives no one else on this host does. The shelf must
  /// outlive it.
  class Making {
   public:
    Making(Making&&) = delete;
    ~Making();  ///< what was not published is removed
    /// Where the compiler is to write it: a name that nobody had before, so that a compiler whose master has died
    /// cannot write into what the next one makes.
    const std::string& path() const { return path_; }
    /// Makes it appear under its key, by rename, the large file before the small one; then makes room where the bound
    /// is passed. Refuses what passes it alone. `pch.path` does not count.
    Status publish(const Pch& pch);

   private:
    friend class PchShelf;
    Making(PchShelf& shelf, const Digest& key, LockFile& locks, LockFile::Hold hold, std::string path);
    PchShelf& shelf_;
    const Digest key_;
    LockFile& locks_;
    const LockFile::Hold hold_;  // of the key
    const std::string path_;
    const pid_t process_;
  };
  /// Null where somebody else is at it (or at removing it), or where the folder cannot be used. The first call of a
  /// process removes what makers that died have left.
  std::unique_ptr<Making> begin(const Digest& key);

  /// Takes it off the shelf: it turned out not to be good. Not where somebody makes it: that will take its place.
  void remove(const Digest& key);

  /// For people: what is there, also what is being made; marks of questions and the lock file do not count.
  struct Usage {
    std::size_t files = 0;
    std::uint64_t bytes = 0;
  };
  Usage usage() const;
  /// Takes everything off the shelf that nobody is making.
  void clear();

 private:
  const Options options_;
  std::atomic<pid_t> swept_by_{0};  // the process that did; a child of fork sweeps for itself
};

/// The small file's form: docs/pch-format.md. `path` is not in it, and of the host only a digest.
std::string encode_pch(const Digest& key, const std::string& host, const Pch& pch);
/// Code::Corrupt for what is damaged or of another version, key or host.
Result<Pch> decode_pch(std::string_view bytes, const Digest& key, const std::string& host);

}  // namespace kiln
