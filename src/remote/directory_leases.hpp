// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/files/beneath.hpp"
#include "base/mutex.hpp"
#include "base/process/per_process.hpp"
#include "remote/lease_table.hpp"

namespace kiln {

/// Leases in a directory that several hosts share. Each request has one file, which is created exclusively; its owner
/// changes the content with each renewal. A lease has expired if the file did not change for the lease time by the
/// observer's own steady clock, so wall clocks do not matter. A process takes over an expired lease by a rename, which
/// only one of several processes succeeds with. Thread-safe.
///
/// Another user with write access to the root cannot make a caller act outside of it: a lease directory that is a
/// symbolic link is rejected, and only regular files with names that this class creates are removed.
class DirectoryLeases final : public LeaseTable {
 public:
  explicit DirectoryLeases(std::string root, const Clock& clock = system_clock(),
                           Resolution resolution = Resolution::Kernel);

  Result<bool> try_acquire(const RequestKey& request, const std::string& owner, Time lease,
                           const Deadline& deadline) override;
  Result<bool> renew(const RequestKey& request, const std::string& owner, Time lease,
                     const Deadline& deadline) override;
  Status release(const RequestKey& request, const std::string& owner, const Deadline& deadline) override;
  Result<Time> remaining_ttl(const RequestKey& request, const Deadline& deadline) override;
  Result<bool> try_hedge(const RequestKey& request, unsigned count, Time window, const Deadline& deadline) override;
  Status probe(const Deadline& deadline) override;
  std::string describe() const override { return root_; }

 private:
  // The current content of a lease file and the time at which this process first saw it.
  struct LeaseObservation {
    std::string content;
    Time first{};
  };
  struct LeaseObservations {
    Mutex mutex;
    std::map<std::string, LeaseObservation> of KILN_GUARDED_BY(mutex);
  };
  Status check(const Deadline& deadline) const;
  /// Returns the remaining time of a lease by the observations of this process; 0 means expired.
  Time remaining(const std::string& name, const std::string& content);
  void forget(const std::string& name);
  /// Opens the lease directory, for each call because it may be removed and created again at any time. Returns nothing
  /// if it does not exist.
  Result<std::optional<Fd>> open_directory() const;
  /// Opens the lease directory and creates it if needed. Users who can write the root can write it, regardless of the
  /// caller's umask.
  Result<Fd> make_directory() const;
  /// Creates a file. Returns false if it already exists.
  Result<bool> create(int directory, const std::string& name, const std::string& content) const;
  /// Returns the content of a file, or nothing if it does not exist.
  Result<std::optional<std::string>> read_row(int directory, const std::string& name) const;
  /// Removes the file if it still has this content. Returns whether it was removed.
  bool withdraw(int directory, const std::string& name, const std::string& content, const std::string& own) const;
  Error failed(std::string_view what, const std::string& name, int error) const;

  const std::string root_;
  const Clock& clock_;
  const Resolution resolution_;
  PerProcess<LeaseObservations> sights_;
};

}  // namespace kiln
