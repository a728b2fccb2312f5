#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "observe/observer.hpp"
#include "remote/courier.hpp"
#include "remote/fleet_policy.hpp"
#include "remote/server_guard.hpp"
#include "store/store.hpp"

namespace kiln {

/// Another store, so used that it can never make things worse: lookups take no longer than the thread's Allowance, one
/// lookup of a key at a time, what was absent is not asked for again at once, and what is put is uploaded later by the
/// courier. With the server gone it is an empty store that answers at once. Any thread.
///
/// It has no errors of its own to report: what the other store fails with is the guard's affair, which tells of it, and
/// here an absence. Code::Corrupt says that the other store rejected what the server has.
///
/// A `put` returns before anything is sent, and succeeds: nobody can do anything about what comes of it. What does not
/// fit into the courier's queue, or comes while the server is given up, is dropped, counted and told (UploadDropped);
/// what was sent is told (Uploaded).
class GuardedStore final : public Store {
 public:
  struct Parts {
    std::shared_ptr<Store> inner;
    std::shared_ptr<ServerGuard> guard;
    std::shared_ptr<Courier> courier;
    FleetPolicy policy;
    Observer observer;
    const Clock* clock = &system_clock();
  };
  explicit GuardedStore(Parts parts);

  Result<std::optional<Hit>> get(const Key& key) override;
  Status put(const Key& key, const Artifact& artifact) override;
  Result<std::vector<Closure>> closures(const RequestKey& request, std::size_t limit = kMostClosures) override;
  Status add_closure(const RequestKey& request, const Closure& closure) override;
  bool writable() override;
  std::string describe() const override;

  struct Counts {
    std::uint64_t asked = 0;     ///< lookups that went to the server
    std::uint64_t spared = 0;    ///< known to be absent, or the same lookup was under way
    std::uint64_t refused = 0;   ///< not asked: no time left, or the server was given up
    std::uint64_t uploaded = 0;  ///< artifacts and closures
    std::uint64_t dropped = 0;
  };
  Counts counts() const;

 private:
  class State;
  class Upload;
  struct Lookup;
  void send(const std::shared_ptr<Upload>& upload, std::uint64_t bytes);

  const std::shared_ptr<State> state_;  // errands on the courier may outlive this
};

}  // namespace kiln
