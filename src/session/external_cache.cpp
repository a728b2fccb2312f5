// SPDX-License-Identifier: Apache-2.0
#include <kiln/external_cache.hpp>

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "base/catch_to_error.hpp"
#include "base/process/process_lifecycle.hpp"
#include "session/session_impl.hpp"

namespace kiln {

struct ExternalCache::State {
  const std::shared_ptr<Session::State> session;
  const std::string system;
};

struct ExternalCache::CompileClaim::State {
  Resolver::Turn turn;
};

ExternalCache::CompileClaim::CompileClaim(std::unique_ptr<State> state) : state_(std::move(state)) {}
ExternalCache::CompileClaim::CompileClaim(CompileClaim&& other) noexcept = default;
ExternalCache::CompileClaim& ExternalCache::CompileClaim::operator=(CompileClaim&& other) noexcept = default;
ExternalCache::CompileClaim::~CompileClaim() = default;

namespace {

std::optional<ExternalCache::Hit> hit_of(std::optional<ResolveResult>& found) {
  if (!found) return std::nullopt;
  return ExternalCache::Hit{std::move(found->artifact.bytes), found->origin};
}

}  // namespace

const std::string& ExternalCache::system() const { return state_->system; }

std::optional<ExternalCache::Hit> ExternalCache::get(std::string_view key) const try {
  auto found = state_->session->impl().components().resolver().find(ExternalKey(state_->system, key), {});
  return hit_of(found);
} catch (const std::bad_alloc&) {
  return std::nullopt;  // treated as a miss: the caller can compile it
}

ExternalCache::LookupResult ExternalCache::get_or_claim(std::string_view key, Wait wait) const try {
  if (process_is_ending()) return {get(key), std::nullopt};  // no other process waits for this one any more
  const std::function<bool()>* const user = wait.keep_waiting();
  const std::function<bool()> keep_waiting = [user] {
    return !process_is_ending() && (user == nullptr || !*user || (*user)());
  };
  InterruptCheck interrupt(&keep_waiting);
  RequestContext context;
  context.deadline.emplace(system_clock(), std::min<std::chrono::nanoseconds>(wait.timeout(), kMaxClaimWait),
                           &interrupt);
  Resolver& resolver = state_->session->impl().components().resolver();
  LookupResult result;
  Resolver::Turn turn = resolver.find_or_claim(ExternalKey(state_->system, key), context);
  result.hit = hit_of(turn.found);
  if (!result.hit && turn.of_host != nullptr) {
    result.claim = CompileClaim(std::make_unique<CompileClaim::State>(CompileClaim::State{std::move(turn)}));
  }
  return result;
} catch (const std::bad_alloc&) {
  return {};  // releases all claims
}

Status ExternalCache::put(std::string_view key, Bytes bytes, const std::string& name, double ms) const {
  return catch_to_error([&] {
    const ExternalKey external(state_->system, key);
    Artifact artifact;
    artifact.bytes = std::move(bytes);
    artifact.target = Target::external(state_->system);
    artifact.metadata.unit = name.empty() ? external.artifact.hex().substr(0, 12) : name;
    artifact.metadata.compiler = state_->system;
    artifact.metadata.cost_ms = std::isfinite(ms) && ms > 0 ? ms : 0;
    return state_->session->impl().components().resolver().publish(external, artifact, {});
  });
}

namespace {

/// Returns the keys of a system's entries in a cache.
Result<std::vector<ArtifactKey>> keys_in(DiskStore& cache, const std::string& system) {
  const auto listed = cache.list_entries();
  if (!listed) return listed.error();
  std::vector<ArtifactKey> keys;
  for (const DiskStore::EntryInfo& entry : *listed) {
    if (entry.target == Target::external(system)) keys.push_back(entry.key);
  }
  return keys;
}

}  // namespace

bool ExternalCache::remove(std::string_view key) const {
  const auto& disks = state_->session->impl().components().disks();
  return !disks.empty() && disks.front()->remove(ArtifactKey::external(state_->system, key));
}

Result<std::size_t> ExternalCache::count() const {
  return catch_to_error([&]() -> Result<std::size_t> {
    const auto& disks = state_->session->impl().components().disks();
    if (disks.empty()) return std::size_t{0};
    const auto keys = keys_in(*disks.front(), state_->system);
    if (!keys) return keys.error();
    return keys->size();
  });
}

Result<std::size_t> ExternalCache::clear() const {
  return catch_to_error([&]() -> Result<std::size_t> {
    const auto& disks = state_->session->impl().components().disks();
    if (disks.empty()) return std::size_t{0};
    const auto keys = keys_in(*disks.front(), state_->system);
    if (!keys) return keys.error();
    std::size_t removed = 0;
    for (const ArtifactKey& key : *keys) removed += disks.front()->remove(key) ? 1 : 0;
    return removed;
  });
}

ExternalCache Session::external_cache(const std::string& system) {
  return ExternalCache(std::make_shared<ExternalCache::State>(ExternalCache::State{state_, system}));
}

}  // namespace kiln
