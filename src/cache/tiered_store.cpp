// SPDX-License-Identifier: Apache-2.0
#include "cache/tiered_store.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace kiln {

TieredStore::TieredStore(std::vector<Tier> tiers, EventEmitter emitter)
    : tiers_(std::move(tiers)), emitter_(std::move(emitter)), reported_(tiers_.size()) {}

void TieredStore::emit(std::size_t tier, const Error& error) {
  if (!emitter_) return;
  {
    const MutexLock lock(mutex_);
    if (reported_[tier] == error.message) return;
    reported_[tier] = error.message;
  }
  emitter_.emit(Event::Kind::CacheUnavailable, tiers_[tier].store->describe(), error.message);
}

bool TieredStore::promotes_to(std::size_t tier, std::size_t found_in) const {
  return tiers_[tier].accepts_promotions && tiers_[tier].distance < tiers_[found_in].distance &&
         tiers_[tier].store->is_writable();
}

void TieredStore::promote(std::size_t found_in, const ArtifactKey& key, const Artifact& artifact,
                          const RequestContext& context) {
  for (std::size_t i = 0; i < found_in; ++i) {
    if (!promotes_to(i, found_in)) continue;
    if (const Status kept = tiers_[i].store->put(key, artifact, context); !kept) emit(i, kept.error());
  }
}

Result<std::optional<Hit>> TieredStore::get(const ArtifactKey& key, const RequestContext& context) {
  return first_hit([&](Store& store) { return store.get(key, context); }, key, context);
}

Result<std::optional<Hit>> TieredStore::get_excluding(const ArtifactKey& key, const Bytes& rejected,
                                                      const RequestContext& context) {
  return first_hit([&](Store& store) { return store.get_excluding(key, rejected, context); }, key, context);
}

template <class Ask>
Result<std::optional<Hit>> TieredStore::first_hit(Ask ask, const ArtifactKey& key, const RequestContext& context) {
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    Result<std::optional<Hit>> hit = ask(*tiers_[i].store);
    if (!hit) {
      emit(i, hit.error());
    } else if (*hit) {
      promote(i, key, (*hit)->artifact, context);
      return hit;
    }
  }
  return std::optional<Hit>();
}

template <class Write>
Status TieredStore::write_all_tiers(Write write) {
  Status result = make_error(Code::Unavailable, "no writable store");
  bool took = false;
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (!tiers_[i].accepts_puts || !tiers_[i].store->is_writable()) continue;
    Status written = write(*tiers_[i].store);
    if (!written) emit(i, written.error());
    if (!took) result = std::move(written);
    took |= result.has_value();
  }
  return result;
}

Status TieredStore::put(const ArtifactKey& key, const Artifact& artifact, const RequestContext& context) {
  return write_all_tiers([&](Store& store) { return store.put(key, artifact, context); });
}

Status TieredStore::add_dependency_set(const RequestKey& request, const DependencySet& dependency_set,
                                       const RequestContext& context) {
  return write_all_tiers([&](Store& store) { return store.add_dependency_set(request, dependency_set, context); });
}

Result<std::vector<DependencySet>> TieredStore::dependency_sets(const RequestKey& request, std::size_t limit,
                                                                const RequestContext& context) {
  std::vector<DependencySet> merged;
  std::vector<std::size_t> empty;  // stores queried so far that had none
  for (std::size_t i = 0; i < tiers_.size() && merged.size() < limit; ++i) {
    auto found = tiers_[i].store->dependency_sets(request, limit, context);
    if (!found) {
      emit(i, found.error());
      continue;
    }
    if (found->empty()) {
      empty.push_back(i);
      continue;
    }
    for (const std::size_t earlier : empty) promote(earlier, i, request, *found, context);
    for (DependencySet& dependency_set : *found) {
      if (merged.size() == limit) break;
      if (std::find(merged.begin(), merged.end(), dependency_set) == merged.end())
        merged.push_back(std::move(dependency_set));
    }
  }
  return merged;
}

void TieredStore::promote(std::size_t tier, std::size_t found_in, const RequestKey& request,
                          const std::vector<DependencySet>& dependency_sets, const RequestContext& context) {
  if (!promotes_to(tier, found_in)) return;
  // The newest is added last, so that it comes first in that store too.
  for (auto dependency_set = dependency_sets.rbegin(); dependency_set != dependency_sets.rend(); ++dependency_set) {
    if (const Status kept = tiers_[tier].store->add_dependency_set(request, *dependency_set, context); !kept)
      emit(tier, kept.error());
  }
}

bool TieredStore::is_writable() {
  return std::any_of(tiers_.begin(), tiers_.end(), [](const Tier& tier) { return tier.store->is_writable(); });
}

std::string TieredStore::describe() const {
  std::string text;
  for (const Tier& tier : tiers_) text += (text.empty() ? "" : ", ") + tier.store->describe();
  return text;
}

}  // namespace kiln
