#pragma once

#include <map>
#include <string>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/per_process.hpp"
#include "remote/lease_table.hpp"

namespace kiln {

/// Leases in a folder that several hosts see: a file per request, made exclusively, whose content its owner changes
/// when he renews it. A lease has lapsed when its file did not change for its length by the watcher's own steady clock:
/// no host's wall clock matters. Taking over a lapsed one is a rename, which one of several succeeds with.
class DirectoryLeases final : public LeaseTable {
 public:
  explicit DirectoryLeases(std::string root, const Clock& clock = system_clock());

  Result<bool> take(const RequestKey& request, const std::string& owner, Time lease, Time limit) override;
  Result<bool> renew(const RequestKey& request, const std::string& owner, Time lease, Time limit) override;
  Status release(const RequestKey& request, const std::string& owner, Time limit) override;
  Result<Time> held(const RequestKey& request, Time limit) override;
  Result<bool> draw(const RequestKey& request, unsigned count, Time window, Time limit) override;
  Status probe(Time limit) override;
  std::string describe() const override { return root_; }

 private:
  // When this process first saw the content that a lease's file has now.
  struct Sight {
    std::string content;
    Time first{};
  };
  struct Sights {
    Mutex mutex;
    std::map<std::string, Sight> of KILN_GUARDED_BY(mutex);
  };
  std::string path_of(const RequestKey& request) const;
  Status check(Time limit) const;
  /// What is left of a lease by what this process has seen of it; zero: it has lapsed.
  Time left(const std::string& path, const std::string& content);
  void forget(const std::string& path);
  /// Whoever may write the root may write what is made in it, whatever his umask.
  Status make_folder() const;
  /// False: there is one already.
  Result<bool> create(const std::string& path, const std::string& content) const;

  const std::string root_;
  const std::string folder_;
  const Clock& clock_;
  PerProcess<Sights> sights_;
};

}  // namespace kiln
