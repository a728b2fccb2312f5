// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/files/beneath.hpp"
#include "base/mutex.hpp"
#include "cache/cache_directory.hpp"
#include "remote/object_store.hpp"

namespace kiln {

/// An object store in a directory that several hosts share: `<root>/ac/ab/abcd…`, `<root>/cas/ab/abcd…`. Each object is
/// a file that a writer publishes by rename. A read opens one file by name and causes no other request to a metadata
/// server. The directory may belong to a group, so its contents are not trusted. The root must exist; writers create
/// the directories below it. Users who can read or write the root can do the same with the created directories,
/// regardless of the writer's umask. Users who can read the root can read the objects, but only the owner can write
/// them. Thread-safe.
///
/// Another user with write access to the root cannot make a caller act outside of it: kiln follows no symbolic link
/// below the root and removes only regular files with names that this class creates.
///
/// Timeouts are checked between system calls: if the file system hangs in a system call, the caller hangs too.
class DirectoryObjectStore final : public ObjectStore {
 public:
  explicit DirectoryObjectStore(std::string root, Resolution resolution = Resolution::Kernel)
      : root_(std::move(root)), resolution_(resolution) {}

  Result<std::optional<Bytes>> read(Bucket bucket, const Digest& name, std::uint64_t maximum,
                                    const Deadline& deadline) override;
  Status write(Bucket bucket, const Digest& name, std::initializer_list<std::string_view> parts,
               const Deadline& deadline) override;
  Status remove(Bucket bucket, const Digest& name, const Deadline& deadline) override;
  Result<std::vector<ObjectInfo>> list(Bucket bucket, const Deadline& deadline) override;
  Status remove_stale_uploads(const Deadline& deadline) override;
  Status probe(const Deadline& deadline) override;
  std::string describe() const override { return root_; }

 private:
  using Directory = std::shared_ptr<const Fd>;
  /// Returns the root, which is opened on first use and cached: opening it for each object would cost as much as
  /// reading the object.
  Result<Directory> directory();
  /// Drops the cached root after it was replaced or its server restarted (ESTALE).
  void forget(const Directory& directory);
  /// Writes the object once. `before` is whether the object existed; if it is empty, this call sets it.
  Status write_once(const Directory& root, const ShardedName& path, std::initializer_list<std::string_view> parts,
                    std::optional<bool>& before);
  bool is_there(const Directory& root, const ShardedName& path) const;
  std::string temporary_name();

  const std::string root_;
  const Resolution resolution_;
  std::atomic<std::uint64_t> sequence_{0};
  Mutex mutex_;
  Directory directory_ KILN_GUARDED_BY(mutex_);
  std::string writer_ KILN_GUARDED_BY(mutex_);  // prefix of this writer's temporary names
};

}  // namespace kiln
