// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "cache/store.hpp"
#include "events/event_emitter.hpp"

namespace kiln {

/// A store that queries several stores in order and copies a hit into the faster stores before it. If a store fails, it
/// emits an event and queries the next. Thread-safe.
class TieredStore final : public Store {
 public:
  /// The distance of a store. A hit is copied only into earlier stores with a smaller distance. A hit in the cache of
  /// an image costs as much as a hit in the user's cache, so a copy would only use space.
  enum class Distance : unsigned char { Memory, Disk, Remote };
  struct Tier {
    std::shared_ptr<Store> store;
    Distance distance = Distance::Disk;
    bool accepts_puts = true;        ///< stores artifacts compiled by this process
    bool accepts_promotions = true;  ///< stores hits of more distant stores
  };
  explicit TieredStore(std::vector<Tier> tiers, EventEmitter emitter = {});

  Result<std::optional<Hit>> get(const ArtifactKey& key, const RequestContext& context) override;
  Result<std::optional<Hit>> get_excluding(const ArtifactKey& key, const Bytes& rejected,
                                           const RequestContext& context) override;
  /// Writes to every writable store that accepts puts. Fails only if all of them fail.
  Status put(const ArtifactKey& key, const Artifact& artifact, const RequestContext& context) override;
  /// Merges the dependency sets of all stores, in the order of the stores, without duplicates. Stops when it has
  /// `limit`.
  Result<std::vector<DependencySet>> dependency_sets(const RequestKey& request, std::size_t limit,
                                                     const RequestContext& context) override;
  Status add_dependency_set(const RequestKey& request, const DependencySet& dependency_set,
                            const RequestContext& context) override;
  bool is_writable() override;
  std::string describe() const override;

 private:
  bool promotes_to(std::size_t tier, std::size_t found_in) const;
  void promote(std::size_t found_in, const ArtifactKey& key, const Artifact& artifact, const RequestContext& context);
  void promote(std::size_t tier, std::size_t found_in, const RequestKey& request,
               const std::vector<DependencySet>& dependency_sets, const RequestContext& context);
  void emit(std::size_t tier, const Error& error);
  /// Returns the first hit.
  template <class Ask>
  Result<std::optional<Hit>> first_hit(Ask ask, const ArtifactKey& key, const RequestContext& context);
  template <class Write>
  Status write_all_tiers(Write write);

  const std::vector<Tier> tiers_;
  const EventEmitter emitter_;
  Mutex mutex_;
  std::vector<std::string> reported_ KILN_GUARDED_BY(mutex_);  // last reported error per tier, so that each is reported
                                                               // once
};

}  // namespace kiln
