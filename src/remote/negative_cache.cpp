// SPDX-License-Identifier: Apache-2.0
#include "remote/negative_cache.hpp"

namespace kiln {

NegativeCache::NegativeCache(const FleetPolicy& policy, Jitter jitter) : policy_(policy), jitter_(jitter) {}

bool NegativeCache::absent(const Digest& name, Time now) {
  const auto found = until_.find(name);
  if (found == until_.end()) return false;
  if (now < found->second.time) return true;
  forget(name);
  return false;
}

void NegativeCache::remember(const Digest& name, Time now) {
  forget(name);
  if (policy_.max_negative_entries == 0) return;
  if (until_.size() >= policy_.max_negative_entries)
    forget(Digest(order_.front()));  // a copy, because `forget` erases the original
  order_.push_back(name);
  until_[name] = {now + jitter_.around(policy_.negative_ttl, policy_.jitter), std::prev(order_.end())};
}

void NegativeCache::forget(const Digest& name) {
  const auto found = until_.find(name);
  if (found == until_.end()) return;
  order_.erase(found->second.place);
  until_.erase(found);
}

}  // namespace kiln
