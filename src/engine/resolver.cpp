#include "engine/resolver.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "cache/server_time_budget.hpp"
#include "core/wait_observer.hpp"
#include "engine/explain.hpp"

namespace kiln {
namespace {

// Minimum wait for another holder. Twice the previous cost of the unit may be too short on a busy host.
constexpr std::chrono::milliseconds kMinWait = std::chrono::seconds(2);
// Interval at which a process that waits for a takeover checks whether the first holder has published after all. It is
// longer than the wait for a stopped holder, so that such a wait ends early.
constexpr std::chrono::milliseconds kTakeoverPollInterval = StoppedHolder::kHangTimeout + std::chrono::seconds(1);

}  // namespace

Event Resolver::event(Event::Kind kind, const Recipe& recipe) {
  return make_event(kind, recipe.unit, recipe.target, recipe.task_id);
}

std::optional<ResolveResult> Resolver::find_in_store(const Recipe& recipe, const RequestKey& request,
                                                     const Bytes* rejected) {
  const auto ask = [&](DependencySet dependency_set) -> std::optional<ResolveResult> {
    const ArtifactKey key = artifact_key(request, dependency_set);
    auto hit = rejected == nullptr ? params_.store->get(key) : params_.store->get_excluding(key, *rejected);
    if (!hit) {
      params_.emitter.emit(Event::Kind::CacheUnavailable, "store", hit.error().message);
      return std::nullopt;
    }
    if (!*hit) return std::nullopt;
    ResolveResult answer{std::move((*hit)->artifact), request, key, (*hit)->origin};
    answer.artifact.dependency_set = std::make_shared<const DependencySet>(std::move(dependency_set));
    answer.is_stored = true;
    return answer;
  };
  if (recipe.self_contained) return ask({});
  const PathRoots places = recipe.path_roots();
  // The newest dependency set is almost always correct, and decoding all sixteen would cost more than the hit.
  for (const std::size_t limit : {std::size_t{1}, Store::kMaxDependencySets}) {
    auto dependency_sets = params_.store->dependency_sets(request, limit);
    if (!dependency_sets) {
      params_.emitter.emit(Event::Kind::CacheUnavailable, "store", dependency_sets.error().message);
      return std::nullopt;
    }
    for (DependencySet& dependency_set : *dependency_sets) {
      if (dependency_checks_->check(dependency_set, places, *params_.digests)) continue;
      if (auto answer = ask(std::move(dependency_set))) return answer;
    }
    if (dependency_sets->size() < limit) break;
  }
  return std::nullopt;
}

Result<std::optional<ResolveResult>> Resolver::lookup(const Recipe& recipe, const Bytes* rejected) {
  if (params_.store == nullptr) return std::optional<ResolveResult>();
  const auto start = params_.clock->steady();
  std::optional<ResolveResult> answer = find_in_store(recipe, recipe.request_key(), rejected);
  if (answer) {
    answer->ms = milliseconds_since(*params_.clock, start);
    answer->flow = recipe.task_id;
    if (params_.emitter) {
      Event hit = event(Event::Kind::Hit, recipe);
      hit.key = answer->key.hex();
      hit.origin = to_string(answer->origin);
      hit.ms = answer->ms;
      params_.emitter.emit(hit);
    }
  }
  // Saved digests speed up the lookup of the next process; a failure to save them is ignored.
  (void)params_.digests->save();
  return answer;
}

Result<std::optional<ResolveResult>> Resolver::lookup_local(const Recipe& recipe, const Bytes* rejected) {
  const ServerTimeBudget none(std::chrono::nanoseconds(0));
  return lookup(recipe, rejected);
}

Result<ResolveResult> Resolver::get(const Recipe& recipe, Compiler& compiler, const Bytes* rejected) {
  const auto start = params_.clock->steady();
  const auto finish = [&](ResolveResult answer) {
    answer.ms = milliseconds_since(*params_.clock, start);
    answer.flow = recipe.task_id;
    return answer;
  };
  ServerTimeBudget budget(params_.server_time_budget);
  // Only the process of a host that holds the claim queries the servers. The others find the entry that it stored.
  const bool claims_first = params_.has_remote_tier && params_.claims != nullptr && params_.compile_allowed;
  auto found = claims_first ? lookup_local(recipe, rejected) : lookup(recipe, rejected);
  if (found && *found) return finish(std::move(**found));
  if (!claims_first) emit_miss(recipe);
  if (!params_.compile_allowed) {
    return make_error(Code::Denied, "unit '" + recipe.unit.label() + "' for " + recipe.target.name() +
                                        " is in no cache tier (searched: " +
                                        (params_.store != nullptr ? params_.store->describe() : "none") +
                                        ") and compiling is disabled (KILN_COMPILE=never)");
  }
  const auto wait = peer_wait_timeout(recipe);
  // Detecting that the holder died takes one lease, and its successor then needs its own time, which may start with
  // detecting another dead holder.
  const auto fleet_wait = params_.fleet != nullptr ? wait + 2 * params_.lease_ttl : std::chrono::milliseconds(0);
  std::unique_ptr<Claim> of_host;
  std::unique_ptr<Claim> of_fleet;
  if (params_.claims != nullptr && params_.store != nullptr) {
    // The holder of the host claim may have to wait for the fleet first.
    auto published = claim_or_find({*params_.claims, wait + fleet_wait, kMaxTakeovers}, recipe, rejected, of_host);
    if (published) return finish(std::move(*published));
  }
  if (claims_first) emit_miss(recipe);
  if (params_.fleet != nullptr && params_.store != nullptr) {
    // Another host may have published since the last query that returned a miss.
    budget.bypass_negative_cache();
    // No takeover: a lease expires by itself, and a hedged compile starts if the holder renews it without progress.
    auto published = claim_or_find({*params_.fleet, fleet_wait, 0}, recipe, rejected, of_fleet);
    if (published) return finish(std::move(*published));
  }
  if (recipe.stop.stop_requested())
    return make_error(Code::Cancelled, "unit '" + recipe.unit.label() + "' was canceled");
  auto compiled = this->compile(recipe, recipe.request_key(), compiler);
  if (!compiled) return std::move(compiled).error();
  return finish(std::move(*compiled));
}

// Emitted before the compile, because afterwards the history contains this build too.
void Resolver::emit_miss(const Recipe& recipe) const {
  if (!params_.emitter) return;
  const ServerTimeBudget none(std::chrono::nanoseconds(0));  // local knowledge only: no server is queried
  Event miss = event(Event::Kind::Miss, recipe);
  miss.message = explain_miss(recipe, params_).summary;
  if (miss.message.rfind("miss: ", 0) == 0) miss.message.erase(0, 6);  // the event kind already says this
  params_.emitter.emit(miss);
}

std::optional<ResolveResult> Resolver::claim_or_find(const Participant& participant, const Recipe& recipe,
                                                     const Bytes* rejected, std::unique_ptr<Claim>& claim) {
  const auto start = params_.clock->steady();
  WorkerSlots::SlotRequest awaited;
  auto level_start = start;
  for (int level = 0;;) {
    const auto asked = params_.clock->steady();
    const auto left = time_left(participant, recipe, level_start);
    // The holder of a lower level may still publish during the wait for a higher level.
    const auto wait = level == 0 ? left : std::min(left, kTakeoverPollInterval);
    Claims::AcquireResult answer =
        acquire(participant.claims, takeover_of(recipe.request_key(), level), wait, recipe, awaited);
    claim = std::move(answer.claim);
    const bool timed_out = answer.outcome == Claims::Outcome::TimedOut;
    const bool is_finished = answer.outcome == Claims::Outcome::ReleasedByOther;
    if (answer.outcome == Claims::Outcome::Unavailable) {
      params_.emitter.emit(Event::Kind::ClaimUnavailable, "claims", answer.reason);
    }
    // The process that compiled has digested the headers; this one reuses its digests.
    if (is_finished) params_.digests->reload();
    // Another process may have published since the last lookup, regardless of the outcome. While another process holds
    // a claim, that process queries the servers.
    const bool asks_servers = !timed_out || level == participant.max_takeovers;
    auto found = asks_servers ? lookup(recipe, rejected) : lookup_local(recipe, rejected);
    if (found && *found) {
      if (timed_out || is_finished) emit_wait(recipe, start);
      return std::move(**found);
    }
    if (is_finished) continue;
    if (!timed_out || recipe.stop.stop_requested()) return std::nullopt;
    const auto now = params_.clock->steady();
    // A wait that ended early was for a stopped holder.
    if (wait < left && now - asked >= wait) continue;
    if (level == participant.max_takeovers) return std::nullopt;
    ++level;
    level_start = now;
  }
}

// Returns the remaining time for one holder, limited by the maximum wait of the thread.
std::chrono::milliseconds Resolver::time_left(const Participant& participant, const Recipe& recipe,
                                              std::chrono::nanoseconds start) const {
  using std::chrono::milliseconds;
  const auto passed = std::chrono::duration_cast<milliseconds>(params_.clock->steady() - start);
  milliseconds remaining = participant.wait - passed;
  if (recipe.waits != nullptr)
    remaining = std::min(remaining, std::chrono::ceil<milliseconds>(recipe.waits->max_wait()));
  return std::max(remaining, milliseconds(0));
}

// The wait is reported only if another holder has the claim. If the claim is free, the thread compiles at once.
Claims::AcquireResult Resolver::acquire(Claims& claims, const RequestKey& request, std::chrono::milliseconds wait,
                                        const Recipe& recipe, WorkerSlots::SlotRequest& awaited) {
  const bool is_visible = params_.slots != nullptr && &claims == params_.claims && !awaited;
  if (recipe.waits == nullptr && !is_visible) return claims.acquire(request, wait, recipe.stop);
  Claims::AcquireResult answer = claims.acquire(request, std::chrono::milliseconds(0), recipe.stop);
  if (answer.outcome != Claims::Outcome::TimedOut || wait.count() == 0) return answer;
  std::optional<WaitObserver::Scope> scope;
  if (recipe.waits != nullptr) scope.emplace(*recipe.waits);
  return is_visible ? wait_visibly(claims, request, wait, recipe, awaited) : claims.acquire(request, wait, recipe.stop);
}

// Waits with background priority until a caller waits for the unit.
Claims::AcquireResult Resolver::wait_visibly(Claims& claims, const RequestKey& request, std::chrono::milliseconds wait,
                                             const Recipe& recipe, WorkerSlots::SlotRequest& awaited) {
  if (!recipe.urgent.is_raised()) {
    const auto start = params_.clock->steady();
    std::stop_source until;
    const auto end = [&] { until.request_stop(); };
    const std::stop_callback on_stop(recipe.stop, end);
    const std::stop_callback on_urgent(recipe.urgent.token(), end);
    Claims::AcquireResult answer = claims.acquire(request, wait, until.get_token());
    wait -= std::chrono::duration_cast<std::chrono::milliseconds>(params_.clock->steady() - start);
    const bool goes_on = answer.outcome == Claims::Outcome::TimedOut && recipe.urgent.is_raised();
    if (!goes_on || recipe.stop.stop_requested() || wait.count() <= 0) return answer;
  }
  // Uses the request itself, because the holder of a takeover compiles the same one.
  awaited = params_.slots->await(recipe.request_key().digest);
  return claims.acquire(request, wait, recipe.stop);
}

void Resolver::emit_wait(const Recipe& recipe, std::chrono::nanoseconds start) const {
  if (!params_.emitter) return;
  Event waited = event(Event::Kind::ClaimWaited, recipe);
  waited.ms = milliseconds_since(*params_.clock, start);
  params_.emitter.emit(waited);
}

std::chrono::milliseconds Resolver::peer_wait_timeout(const Recipe& recipe) const {
  if (params_.history == nullptr) return params_.unknown_cost_wait;
  double cost = 0;
  const auto builds = params_.history->builds(recipe.unit.kind(), recipe.unit.name());
  for (std::size_t i = 0; builds && i < builds->size(); ++i) cost = std::max(cost, (*builds)[i].cost_ms);
  if (cost <= 0) return params_.unknown_cost_wait;
  return std::max(kMinWait, std::chrono::milliseconds(static_cast<std::int64_t>(2 * cost)));
}

Result<ResolveResult> Resolver::compile(const Recipe& recipe, const RequestKey& request, Compiler& compiler) {
  auto compiled = compiler.compile(recipe);
  if (!compiled) {
    if (params_.emitter) {
      const bool cancelled = compiled.error().code == Code::Cancelled;
      Event failed = event(cancelled ? Event::Kind::Cancelled : Event::Kind::CompileFailed, recipe);
      failed.message = compiled.error().message;
      params_.emitter.emit(failed);
    }
    return std::move(compiled).error();
  }
  ResolveResult answer{std::move(compiled->artifact), request, {}, Origin::Compiled, compiled->uncacheable_reason};
  if (answer.artifact.dependency_set == nullptr)
    answer.artifact.dependency_set = std::make_shared<const DependencySet>();
  answer.key = artifact_key(request, *answer.artifact.dependency_set);
  if (params_.emitter) {
    Event done = event(Event::Kind::Compiled, recipe);
    done.key = answer.key.hex();
    done.origin = "compiled";
    done.ms = answer.artifact.metadata.cost_ms;
    params_.emitter.emit(done);
  }
  answer.is_stored = publish(recipe, answer, compiled->uncacheable_reason);
  return answer;
}

bool Resolver::publish(const Recipe& recipe, const ResolveResult& answer, const std::string& not_cacheable) {
  if (params_.store == nullptr) return false;
  std::string problem = not_cacheable;
  if (problem.empty()) {
    // The artifact first: a hint without its entry would be a miss; an entry without its hint is only unused.
    Status put = params_.store->put(answer.key, answer.artifact);
    if (put && !recipe.self_contained)
      put = params_.store->add_dependency_set(answer.request, *answer.artifact.dependency_set);
    if (!put) problem = put.error().message;
  }
  if (problem.empty() && params_.history != nullptr) {
    (void)params_.history->record(recipe, answer.key, answer.artifact.metadata.cost_ms);
  }
  (void)params_.digests->save();
  if (!params_.emitter) return problem.empty();
  Event event = this->event(problem.empty() ? Event::Kind::Published : Event::Kind::NotPublished, recipe);
  event.key = answer.key.hex();
  event.message = problem;
  params_.emitter.emit(event);
  return problem.empty();
}

}  // namespace kiln
