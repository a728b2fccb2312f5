#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "remote/lease_table.hpp"

namespace kiln {

/// Leases in a folder that several hosts see: a file per request, made exclusively, whose content its owner changes
/// when he renews it. A lease has lapsed when its file did not change for its length by the watcher's own steady clock:
/// no host's wall clock matters. Taking over a lapsed one is a rename, which one of several succeeds with.
class DirectoryLeases final : public LeaseTable {
 public:
  explicit DirectoryLeases(std::string root, const Clock& clock = system_clock());
  ~DirectoryLeases() override;

  Result<bool> take(const RequestKey& request, const std::string& owner, Time lease, Time limit) override;
  Result<bool> renew(const RequestKey& request, const std::string& owner, Time lease, Time limit) override;
  Status release(const RequestKey& request, const std::string& owner, Time limit) override;
  Result<Time> held(const RequestKey& request, Time limit) override;
  Result<bool> draw(const RequestKey& request, unsigned count, Time window, Time limit) override;
  Status probe(Time limit) override;
  std::string describe() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kiln
