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
  if (policy_.most_absent == 0) return;
  if (until_.size() >= policy_.most_absent) forget(Digest(order_.front()));  // a copy: its original goes
  order_.push_back(name);
  until_[name] = {now + jitter_.around(policy_.absent_for, policy_.jitter), std::prev(order_.end())};
}

void NegativeCache::forget(const Digest& name) {
  const auto found = until_.find(name);
  if (found == until_.end()) return;
  order_.erase(found->second.place);
  until_.erase(found);
}

}  // namespace kiln
