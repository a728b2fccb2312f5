#include <kiln/external_cache.hpp>

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "base/catch_to_error.hpp"
#include "base/error.hpp"
#include "base/process/process_lifecycle.hpp"
#include "cache/server_time_budget.hpp"
#include "session/session_impl.hpp"

namespace kiln {

struct ExternalCache::State {
  const std::shared_ptr<Session::State> session;
  const std::string system;
};

// The fleet claim is released before the host claim, as it was acquired after it.
struct ExternalCache::CompileClaim::State {
  std::unique_ptr<Claim> of_host;
  std::unique_ptr<Claim> of_fleet;
};

ExternalCache::CompileClaim::CompileClaim(std::unique_ptr<State> state) : state_(std::move(state)) {}
ExternalCache::CompileClaim::CompileClaim(CompileClaim&& other) noexcept = default;
ExternalCache::CompileClaim& ExternalCache::CompileClaim::operator=(CompileClaim&& other) noexcept = default;
ExternalCache::CompileClaim::~CompileClaim() = default;

namespace {

using Nanoseconds = std::chrono::nanoseconds;

// Interval between two checks of another holder's claim: short at first, then a fraction of the time waited so far. The
// maximum is also the delay after which a canceled wait ends.
constexpr Nanoseconds kInitialPollInterval = std::chrono::milliseconds(1);
constexpr Nanoseconds kMaxPollInterval = std::chrono::milliseconds(100);
constexpr int kPartOfWait = 8;
constexpr Nanoseconds kMaxWait = std::chrono::hours(24 * 365);  // longer waits would overflow the clock's nanoseconds

/// One lookup. It follows the same steps as the `Resolver`, with the same components, for a key that needs no
/// dependency set, and lets the caller compile on a miss.
class ExternalLookup {
 public:
  ExternalLookup(Components& tools, const std::string& system, std::string_view key)
      : params_(tools.params()), system_(system), text_(key), key_(ArtifactKey::external(system, key)) {}

  std::optional<ExternalCache::Hit> lookup() const;
  /// Looks up in the tiers of this host only and queries no server.
  std::optional<ExternalCache::Hit> look_here() const {
    const ServerTimeBudget none(Nanoseconds(0));
    return lookup();
  }
  void emit(Event::Kind kind, const std::string& name, double ms = 0, std::string message = {}) const;

  bool has_claims() const { return params_.store != nullptr && params_.claims != nullptr; }
  bool asks_servers() const { return params_.has_remote_tier; }
  Nanoseconds server_time() const { return params_.server_time_budget; }
  /// Acquires the claim, or returns the entry that its holder published in the meantime. Does neither if the deadline
  /// expires.
  std::optional<ExternalCache::Hit> claim_host(Deadline deadline, std::unique_ptr<Claim>& claim) const;
  std::optional<ExternalCache::Hit> claim_fleet(Deadline deadline, std::unique_ptr<Claim>& claim) const;
  Deadline within(Nanoseconds wait) const { return {*params_.clock, std::clamp(wait, Nanoseconds(0), kMaxWait)}; }
  Status put(Bytes bytes, const std::string& name, double ms) const;

 private:
  /// Returns the key of the claims. A hit does not need it.
  RequestKey request() const { return RequestKey::external(system_, text_); }

  const Resolver::Params& params_;
  const std::string& system_;
  const std::string_view text_;
  const ArtifactKey key_;
};

void ExternalLookup::emit(Event::Kind kind, const std::string& name, double ms, std::string message) const {
  if (!params_.emitter) return;
  Event event;
  event.kind = kind;
  event.key = key_.hex();
  event.unit = name.empty() ? event.key.substr(0, 12) : name;
  event.target = system_;
  event.ms = ms;
  event.message = std::move(message);
  params_.emitter.emit(event);
}

std::optional<ExternalCache::Hit> ExternalLookup::lookup() const {
  if (params_.store == nullptr) return std::nullopt;
  const auto start = params_.clock->steady();
  auto hit = params_.store->get(key_);
  if (!hit) {
    params_.emitter.emit(Event::Kind::CacheUnavailable, "store", hit.error().message);
    return std::nullopt;
  }
  if (!*hit) return std::nullopt;
  Artifact& artifact = (*hit)->artifact;
  // Only a forged entry has another form or system under such a key.
  if (artifact.target.form != Form::External || artifact.target.architecture != system_) return std::nullopt;
  if (params_.emitter) {
    Event event;
    event.kind = Event::Kind::Hit;
    event.key = key_.hex();
    event.unit = artifact.metadata.unit;
    event.target = system_;
    event.origin = to_string((*hit)->origin);
    event.ms = milliseconds_since(*params_.clock, start);
    params_.emitter.emit(event);
  }
  return ExternalCache::Hit{std::move(artifact.bytes), (*hit)->origin};
}

std::optional<ExternalCache::Hit> ExternalLookup::claim_host(Deadline deadline, std::unique_ptr<Claim>& claim) const {
  const RequestKey request = this->request();
  const auto start = params_.clock->steady();
  int level = 0;
  StoppedHolder stopped;
  for (bool waited = false;; waited = true) {
    // Without waiting: a wait inside the claims could not be canceled within a tenth of a second.
    Claims::AcquireResult answer = params_.claims->acquire(takeover_of(request, level), std::chrono::milliseconds(0));
    const bool is_unavailable = answer.outcome == Claims::Outcome::Unavailable;
    if (is_unavailable) params_.emitter.emit(Event::Kind::ClaimUnavailable, "claims", answer.reason);
    // Another process may have published between this lookup and the claim, or during the sleep.
    if (auto found = look_here()) {
      if (waited) emit(Event::Kind::ClaimWaited, {}, milliseconds_since(*params_.clock, start));
      return found;
    }
    claim = std::move(answer.claim);
    if (claim != nullptr || is_unavailable) return std::nullopt;
    const Nanoseconds remaining = deadline.remaining();
    if (remaining <= Nanoseconds(0) || process_is_ending() || ServerTimeBudget::is_cancelled()) return std::nullopt;
    const Nanoseconds now = params_.clock->steady();
    if (level < kMaxTakeovers && stopped.is_given_up(answer.is_holder_stopped, now)) {
      ++level;
      stopped = {};
      continue;
    }
    const Nanoseconds passed = now - start;
    params_.clock->sleep(std::min(remaining, std::clamp(passed / kPartOfWait, kInitialPollInterval, kMaxPollInterval)));
  }
}

std::optional<ExternalCache::Hit> ExternalLookup::claim_fleet(Deadline deadline, std::unique_ptr<Claim>& claim) const {
  if (params_.fleet == nullptr) return std::nullopt;
  const auto start = params_.clock->steady();
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.remaining());
    Claims::AcquireResult answer = params_.fleet->acquire(request(), left);
    claim = std::move(answer.claim);
    if (answer.outcome == Claims::Outcome::Unavailable) {
      params_.emitter.emit(Event::Kind::ClaimUnavailable, "claims", answer.reason);
    }
    // Another host may have published since the last lookup, regardless of the outcome.
    const bool is_finished = answer.outcome == Claims::Outcome::ReleasedByOther;
    if (auto found = lookup()) {
      if (is_finished || answer.outcome == Claims::Outcome::TimedOut) {
        emit(Event::Kind::ClaimWaited, {}, milliseconds_since(*params_.clock, start));
      }
      claim.reset();
      return found;
    }
    if (!is_finished) return std::nullopt;
  }
}

Status ExternalLookup::put(Bytes bytes, const std::string& name, double ms) const {
  Artifact artifact;
  artifact.bytes = std::move(bytes);
  artifact.target = Target::external(system_);
  artifact.metadata.unit = name.empty() ? key_.hex().substr(0, 12) : name;
  artifact.metadata.compiler = system_;
  artifact.metadata.cost_ms = std::isfinite(ms) && ms > 0 ? ms : 0;
  Status kept = params_.store != nullptr ? params_.store->put(key_, artifact)
                                         : make_error(Code::Unavailable, "there is no cache: caching is disabled");
  emit(kept ? Event::Kind::Published : Event::Kind::NotPublished, artifact.metadata.unit, 0,
       kept ? std::string() : kept.error().message);
  return kept;
}

}  // namespace

const std::string& ExternalCache::system() const { return state_->system; }

std::optional<ExternalCache::Hit> ExternalCache::get(std::string_view key) const try {
  const ExternalLookup question(state_->session->impl().components(), state_->system, key);
  const ServerTimeBudget budget(question.server_time());
  auto found = question.lookup();
  if (!found) question.emit(Event::Kind::Miss, {});
  return found;
} catch (const std::bad_alloc&) {
  return std::nullopt;  // treated as a miss: the caller can compile it
}

ExternalCache::LookupResult ExternalCache::get_or_claim(std::string_view key, Nanoseconds wait,
                                                        const std::function<bool()>& over) const try {
  const ExternalLookup question(state_->session->impl().components(), state_->system, key);
  ServerTimeBudget budget(question.server_time(), over);
  const Deadline deadline = question.within(wait);
  // The process of this host that holds the claim queries the servers; the others find what it fetched.
  const bool claims_first = question.asks_servers() && question.has_claims();
  LookupResult answer;
  answer.hit = claims_first ? question.look_here() : question.lookup();
  if (answer.hit) return answer;
  auto turn = std::make_unique<CompileClaim::State>();
  if (question.has_claims() && !process_is_ending()) answer.hit = question.claim_host(deadline, turn->of_host);
  if (!answer.hit && claims_first) answer.hit = question.lookup();
  if (answer.hit) return answer;
  question.emit(Event::Kind::Miss, {});
  if (turn->of_host == nullptr) return answer;
  // Another host may have published since the servers reported a miss to this one.
  budget.bypass_negative_cache();
  answer.hit = question.claim_fleet(deadline, turn->of_fleet);
  if (!answer.hit) answer.claim = CompileClaim(std::move(turn));
  return answer;
} catch (const std::bad_alloc&) {
  return {};  // releases all claims
}

Status ExternalCache::put(std::string_view key, Bytes bytes, const std::string& name, double ms) const {
  return catch_to_error([&] {
    return ExternalLookup(state_->session->impl().components(), state_->system, key).put(std::move(bytes), name, ms);
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
