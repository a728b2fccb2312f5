// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "base/mutex.hpp"

namespace kiln {

/// Whether the host process tracks the files that a compiler reads, including its library, and decides whether the
/// result can be cached. It does so for its workers, which then do not have to digest a library of 100 MB each.
enum class InputTracking { Off, On };

/// A vendor library that is opened at the first use, with the digest of its files. Thread-safe.
template <class Library>
class LazyLibrary {
 public:
  explicit LazyLibrary(InputTracking watched) : watched_(watched) {}

  /// Opens the library. `digest` returns the digest of the library's files, if they are readable. It is called first:
  /// if files are replaced between the two steps, the digest is that of the older files and nothing is cached. It is
  /// called without the lock, because it can take half a second.
  template <class DigestOf>
  Result<std::shared_ptr<const Library>> open(const std::string& path, const DigestOf& digest) {
    {
      const MutexLock lock(mutex_);
      if (library_ != nullptr) return library_;
    }
    const std::optional<Digest> content = watched_ == InputTracking::Off ? digest() : std::nullopt;
    const MutexLock lock(mutex_);
    if (library_ != nullptr) return library_;
    auto opened = Library::open(path);
    if (!opened) return opened.error();
    content_ = content;
    return library_ = std::move(*opened);
  }

  bool is_watched() const { return watched_ == InputTracking::On; }
  /// Returns true if this is the library of a recipe's key. Its files may have been replaced since.
  bool matches(const Digest& digest) const {
    const MutexLock lock(mutex_);
    return content_ == digest;
  }

 private:
  const InputTracking watched_;
  mutable Mutex mutex_;
  std::shared_ptr<const Library> library_ KILN_GUARDED_BY(mutex_);
  std::optional<Digest> content_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
