#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "observe/observer.hpp"
#include "store/store.hpp"

namespace kiln {

/// Several stores as one: each is asked in turn, and what a slow one had is kept in the faster ones before it. A store
/// that fails is an event, and the next is asked. Any thread.
class TieredStore final : public Store {
 public:
  /// How far away a store is. A hit is copied into earlier stores that are nearer, not into ones that are as near: a
  /// hit in an image's cache costs what a hit in the user's own costs, and copying it would only take up space.
  enum class Distance : unsigned char { Memory, Disk, Remote };
  struct Tier {
    std::shared_ptr<Store> store;
    Distance distance = Distance::Disk;
    bool takes_puts = true;    ///< what was compiled here is kept in it
    bool takes_copies = true;  ///< and what a store further away had
  };
  explicit TieredStore(std::vector<Tier> tiers, Observer observer = {});

  Result<std::optional<Hit>> get(const Key& key) override;
  Result<std::optional<Hit>> get_instead(const Key& key, const Bytes& refused) override;
  /// Goes to every writable store that takes puts. An error only when none of them took it.
  Status put(const Key& key, const Artifact& artifact) override;
  /// Those of all stores, an earlier store's first, each once. Stops asking when there are `limit`.
  Result<std::vector<Closure>> closures(const RequestKey& request, std::size_t limit = kMostClosures) override;
  Status add_closure(const RequestKey& request, const Closure& closure) override;
  bool writable() override;
  std::string describe() const override;

 private:
  bool copies_into(std::size_t tier, std::size_t found_in) const;
  void keep_nearer(std::size_t found_in, const Key& key, const Artifact& artifact);
  void keep_nearer(std::size_t tier, std::size_t found_in, const RequestKey& request,
                   const std::vector<Closure>& closures);
  void tell(std::size_t tier, const Error& error);
  /// What the first store has that has something.
  template <class Ask>
  Result<std::optional<Hit>> first(Ask ask, const Key& key);
  template <class Write>
  Status write_all_tiers(Write write);

  const std::vector<Tier> tiers_;
  const Observer observer_;
  Mutex mutex_;
  std::vector<std::string> told_ KILN_GUARDED_BY(mutex_);  // per tier, so that a broken one is told of once
};

}  // namespace kiln
