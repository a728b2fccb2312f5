#pragma once

#include <memory>
#include <optional>
#include <string>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "base/mutex.hpp"

namespace kiln {

/// Whether somebody outside sees which files a compiler reads, its library's among them, and decides by that what may
/// be kept, as a program does for its workers: these then need not digest a library of 100 MB each.
enum class Watched { No, Yes };

/// A vendor's library, opened at the first need, and which it was. Any thread.
template <class Library>
class OpenedLibrary {
 public:
  explicit OpenedLibrary(Watched watched) : watched_(watched) {}

  /// `digest` gives that of the library's files where it can. It is asked first: files that are replaced in between are
  /// then taken for the older ones, and nothing is kept. And without the lock: it may take half a second.
  template <class DigestOf>
  Result<std::shared_ptr<const Library>> open(const std::string& path, const DigestOf& digest) {
    {
      const MutexLock lock(mutex_);
      if (library_ != nullptr) return library_;
    }
    const std::optional<Digest> content = watched_ == Watched::No ? digest() : std::nullopt;
    const MutexLock lock(mutex_);
    if (library_ != nullptr) return library_;
    auto opened = Library::open(path);
    if (!opened) return opened.error();
    content_ = content;
    return library_ = std::move(*opened);
  }

  bool is_watched() const { return watched_ == Watched::Yes; }
  /// Whether it is the one that a recipe was keyed by: its files may have been replaced since.
  bool is(const Digest& digest) const {
    const MutexLock lock(mutex_);
    return content_ == digest;
  }

 private:
  const Watched watched_;
  mutable Mutex mutex_;
  std::shared_ptr<const Library> library_ KILN_GUARDED_BY(mutex_);
  std::optional<Digest> content_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
