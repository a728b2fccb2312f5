#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/mutex.hpp"
#include "remote/depot.hpp"

namespace kiln {

/// A depot in a folder that several hosts see: `<root>/ac/ab/abcd…`, `<root>/cas/ab/abcd…`, each body a file that
/// appears by rename. A read is one open by name and nothing else that a metadata server would notice. The folder may
/// belong to a group: nothing of it is believed. It must be there already; the shelves below are made when something is
/// written, and whoever may read or write the folder may do so with what is made there, whatever the writer's umask.
///
/// Limits hold between the system's calls: a file system that hangs in one of them hangs its caller.
class DirectoryDepot final : public Depot {
 public:
  explicit DirectoryDepot(std::string root) : root_(std::move(root)) {}

  Result<std::optional<Bytes>> read(Shelf shelf, const Digest& name, std::uint64_t most, Time limit) override;
  Status write(Shelf shelf, const Digest& name, std::initializer_list<std::string_view> parts, Time limit) override;
  Status remove(Shelf shelf, const Digest& name, Time limit) override;
  Result<std::vector<Listed>> list(Shelf shelf, Time limit) override;
  Status tidy(Time limit) override;
  Status probe(Time limit) override;
  std::string describe() const override { return root_; }

 private:
  using Folder = std::shared_ptr<const Fd>;
  /// The root, opened at the first need and kept: opening it for each body would cost as much as the body.
  Result<Folder> folder();
  /// It was replaced under us, or is of a server that forgot us.
  void forget(const Folder& folder);
  Status write_once(const std::string& name, std::initializer_list<std::string_view> parts);
  std::string temporary_name();

  const std::string root_;
  std::atomic<std::uint64_t> sequence_{0};
  Mutex mutex_;
  Folder folder_ KILN_GUARDED_BY(mutex_);
  std::string writer_ KILN_GUARDED_BY(mutex_);  // what this writer's temporary names begin with
};

}  // namespace kiln
