// SPDX-License-Identifier: Apache-2.0
#include "engine/resolver.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/process/process_lifecycle.hpp"
#include "base/process/system_info.hpp"
#include "engine/claim_wait.hpp"
#include "engine/explain.hpp"

namespace kiln {
namespace {

// Number of artifacts to try if the driver rejects one: another tier's, then the compiler's.
constexpr int kMaxRejections = 3;
// Minimum wait for another holder. Twice the previous cost of the unit may be too short on a busy host.
constexpr std::chrono::milliseconds kMinWait = std::chrono::seconds(2);
// Interval at which a process that waits for a takeover checks whether the first holder has published after all. It is
// longer than the wait for a stopped holder, so that such a wait ends early.
constexpr std::chrono::milliseconds kTakeoverPollInterval = StoppedHolder::kHangTimeout + std::chrono::seconds(1);

}  // namespace

Result<ResolveResult> Resolver::get(const CompileRequest& request, const RequestContext& context) {
  auto prebuilt = find_prebuilt(request, context);
  if (prebuilt && *prebuilt) return std::move(**prebuilt);
  const auto recipe = this->recipe(request, context);
  if (!recipe) return recipe.error();
  return resolve(request, *recipe, context);
}

Result<std::optional<ResolveResult>> Resolver::find_prebuilt(const CompileRequest& request,
                                                             const RequestContext& context) {
  std::optional<ResolveResult> result = find_in_bundles(request, context, nullptr);
  for (int rejections = 0; result && rejections < kMaxRejections; ++rejections) {
    if (load(request, *result)) return std::optional(without_spare_bytes(request, *std::move(result)));
    const Bytes rejected = result->artifact.bytes;
    result = find_in_bundles(request, context, &rejected);
    if (result && result->artifact.bytes == rejected) break;
  }
  return std::optional<ResolveResult>();
}

std::unique_ptr<EarlyCompile> Resolver::start_early(const CompileRequest& request, const RequestContext& context) {
  if (params_.units == nullptr || !params_.compile_allowed) return nullptr;
  // In a fleet another host probably has the code or compiles it: every new host would compile a unit for nothing.
  if (params_.has_remote_tier || params_.fleet != nullptr) return nullptr;
  const auto recipe = params_.units->undigested_recipe(request.unit, request.target);
  // On one core, the compile of a request that turns out to be a hit would delay it.
  if (!recipe || usable_cores() < 2) return nullptr;
  // A unit that was built on this host is probably a hit.
  if (params_.history != nullptr) {
    const auto builds = params_.history->builds(request.unit.kind(), request.unit.name());
    if (builds && !builds->empty()) return nullptr;
  }
  const auto compiler = params_.units->compiler(request.unit, request.target);
  return compiler ? (*compiler)->start_early(*recipe, context) : nullptr;
}

Result<Recipe> Resolver::recipe(const CompileRequest& request, const RequestContext& context) {
  auto recipe = params_.units->recipe(request.unit, request.target, context);
  if (recipe || params_.bundles == nullptr || params_.bundles_exact) return recipe;
  // No compiler, and a bundle that is not used or has the unit for other devices: the user must know both.
  const Target target = effective_target(request.unit, request.target);
  const std::string why = params_.bundles->explain_miss(request.unit, target);
  if (why.empty()) return recipe;
  Error error = std::move(recipe).error();
  error.message = "no bundle has usable code for " + target.name() + " (" + why +
                  "), and it cannot be compiled here: " + error.message;
  return error;
}

Result<ResolveResult> Resolver::resolve(const CompileRequest& request, const Recipe& recipe,
                                        const RequestContext& context) {
  const auto compiler = params_.units->compiler(request.unit, request.target);
  if (!compiler) return compiler.error();
  if (params_.bundles != nullptr && params_.bundles_exact) {
    params_.bundles->emit_other_compilers(recipe, context);
  }
  Result<ResolveResult> result = get(recipe, **compiler, context);
  // The compiler may have registered exit handlers in the middle of its first compile.
  if (!result || result->origin == Origin::Compiled) reregister_exit_handler();
  for (int rejections = 1; result; ++rejections) {
    const Status loaded = load(request, *result);
    if (loaded) return without_spare_bytes(request, *std::move(result));
    const Bytes rejected = result->artifact.bytes;
    result = get(recipe, **compiler, context, &rejected);
    // The compiler produces the same code again: this driver and this compiler are incompatible.
    if (result && (result->artifact.bytes == rejected || rejections == kMaxRejections)) return loaded.error();
  }
  return result;
}

Result<std::optional<ResolveResult>> Resolver::lookup(const CompileRequest& request, const RequestContext& context) {
  if (auto prebuilt = find_prebuilt(request, context); prebuilt && *prebuilt) return prebuilt;
  // A task can compile while it digests the compiler; the thread of a caller cannot.
  const bool may_start_early = params_.units != nullptr && params_.compile_allowed;
  if (may_start_early && params_.units->undigested_recipe(request.unit, request.target))
    return std::optional<ResolveResult>();
  const auto recipe = this->recipe(request, context);
  if (!recipe) return recipe.error();
  std::optional<ResolveResult> result = find_local(subject_of(*recipe, nullptr), context);
  // If the driver rejects it here, it rejects it again on a thread that has the time to get another artifact.
  if (!result || !load(request, *result)) return std::optional<ResolveResult>();
  return std::optional(without_spare_bytes(request, *std::move(result)));
}

bool Resolver::inputs_changed(const Recipe& recipe) {
  const auto now = params_.units->recipe(recipe.unit, recipe.target, {});
  if (!now || now->request_key() != recipe.request_key()) return true;
  const auto compiler = params_.units->compiler(recipe.unit, recipe.target);
  return compiler && (*compiler)->should_retry(recipe);
}

bool Resolver::is_current(const CompileRequest& request, const ResolveResult& result, const RequestContext& context) {
  // A bundle is queried by unit, and an uncacheable result cannot be checked.
  const bool can_check = !result.is_slim && result.uncacheable_reason.empty() && result.origin != Origin::Bundle;
  if (!can_check || result.artifact.dependency_set == nullptr) return false;
  const auto recipe = this->recipe(request, context);
  if (!recipe || recipe->request_key() != result.request) return false;
  return !check(*result.artifact.dependency_set, recipe->path_roots(), *params_.digests, context.requested_at);
}

void Resolver::interrupt() {
  if (params_.units != nullptr) params_.units->interrupt();
}

Status Resolver::load(const CompileRequest& request, const ResolveResult& result) const {
  return params_.loader != nullptr ? params_.loader->load(request, result) : Status();
}

ResolveResult Resolver::without_spare_bytes(const CompileRequest& request, ResolveResult result) const {
  const bool can_drop = params_.loader != nullptr && params_.loader->can_drop_bytes(request, result);
  return can_drop ? result.slim() : std::move(result);
}

Result<std::optional<ResolveResult>> Resolver::find(const Recipe& recipe, const RequestContext& context,
                                                    const Bytes* rejected) {
  return find(subject_of(recipe, rejected), context);
}

// The error of a miss that must not be compiled. It names what would have to change for a hit.
Error Resolver::denied(const Recipe& recipe, const Store* store) const {
  std::string why =
      params_.bundles != nullptr ? params_.bundles->explain_miss(recipe.unit, recipe.target) : std::string();
  if (!why.empty() && params_.bundles_exact) why += "; KILN_BUNDLE_MATCH=compatible accepts code of another compiler";
  return make_error(
      Code::Denied,
      "unit '" + recipe.unit.label() + "' for " + recipe.target.name() + " is in no cache tier (searched: " +
          (store != nullptr ? store->describe() : "none") + ") and compiling is disabled (KILN_COMPILE=never)" +
          (why.empty() ? "; fill the cache with 'kiln warm', or use a bundle that has the unit (KILN_BUNDLES)"
                       : ": " + why));
}

Result<ResolveResult> Resolver::get(const Recipe& recipe, Compiler& compiler, const RequestContext& context,
                                    const Bytes* rejected) {
  const auto start = params_.clock->steady();
  const Subject subject = subject_of(recipe, rejected);
  Turn turn = find_or_claim(subject, context);
  if (!turn.found && !params_.compile_allowed) {
    return denied(recipe, subject.store);
  }
  if (!turn.found && context.stop.stop_requested()) {
    return make_error(Code::Cancelled, "unit '" + recipe.unit.label() + "' was canceled");
  }
  // Overloaded servers get no upload either: a host that holds the claim of the fleet publishes.
  ServerTimeBudget none(std::chrono::nanoseconds(0));
  const RequestContext within = turn.servers_refused ? context.with_budget(none) : context;
  Result<ResolveResult> result =
      turn.found ? Result<ResolveResult>(*std::move(turn.found)) : compile(recipe, compiler, subject, within);
  if (!result) return result;
  result->ms = milliseconds_since(*params_.clock, start);
  result->flow = context.task_id;
  return result;
}

std::optional<ResolveResult> Resolver::find(const ExternalKey& key, const RequestContext& context) {
  const Subject subject = subject_of(key);
  ServerTimeBudget budget(params_.server_time_budget);
  auto found = find(subject, context.with_budget(budget));
  if (!found) emit_miss(subject, context);
  return found;
}

Resolver::Turn Resolver::find_or_claim(const ExternalKey& key, const RequestContext& context) {
  Subject subject = subject_of(key);
  subject.request = RequestKey::external(key.system, key.text);
  return find_or_claim(subject, context);
}

Status Resolver::publish(const ExternalKey& key, const Artifact& artifact, const RequestContext& context) {
  return publish(subject_of(key), key.artifact, artifact, {}, context);
}

Resolver::Subject Resolver::subject_of(const Recipe& recipe, const Bytes* rejected) {
  return {&recipe, nullptr, recipe.request_key(), params_.store_for(recipe.unit), rejected};
}

Resolver::Subject Resolver::subject_of(const ExternalKey& key) const {
  return {nullptr, &key, {}, params_.store, nullptr};
}

// Callers without an engine, and those of other systems, wait for the result.
ServerTimeBudget Resolver::server_time_budget(const Subject& subject, const RequestContext& context) const {
  if (subject.external != nullptr || !context.urgent.can_be_raised())
    return ServerTimeBudget(params_.server_time_budget);
  return {params_.background_server_time_budget, context.urgent, params_.server_time_budget};
}

Resolver::Turn Resolver::find_or_claim(const Subject& subject, const RequestContext& outer) {
  ServerTimeBudget budget = server_time_budget(subject, outer);
  const RequestContext context = outer.with_budget(budget);
  Turn turn;
  const bool can_compile = params_.compile_allowed || subject.external != nullptr;
  const bool has_claims = params_.claims != nullptr && subject.store != nullptr && can_compile;
  // Only the process of a host that holds the claim queries the servers. The others find the entry that it stored.
  const bool claims_first = params_.has_remote_tier && has_claims;
  turn.found = claims_first ? find_local(subject, context) : find(subject, context);
  if (turn.found) return turn;
  // A caller of another system that waits for an entry and gets it had no miss.
  const bool emits_late = claims_first || (has_claims && subject.external != nullptr);
  if (!emits_late) emit_miss(subject, context);
  if (!can_compile) return turn;
  const auto wait = peer_wait_timeout(subject);
  // Detecting that the holder died takes one lease, and its successor then needs its own time, which may start with
  // detecting another dead holder.
  const auto fleet_wait =
      params_.fleet != nullptr ? kFleetWaitFactor * wait + 2 * params_.lease_ttl : std::chrono::milliseconds(0);
  if (has_claims) {
    // The holder of the host claim may have to wait for the fleet first.
    const Participant host{*params_.claims, wait + fleet_wait, kMaxTakeovers, subject.external == nullptr};
    turn.found = claim_or_find(host, subject, context, turn.of_host);
    if (turn.found) return turn;
  }
  if (emits_late) emit_miss(subject, context);
  // The caller of another system waits for one claim at most: without the claim of its host its time is over.
  const bool asks_fleet = params_.fleet != nullptr && subject.store != nullptr;
  if (asks_fleet && (subject.external == nullptr || turn.of_host != nullptr)) {
    // Another host may have published since the last query that returned a miss.
    budget.bypass_negative_cache();
    // No takeover: a lease expires by itself, and a hedged compile starts if the holder renews it without progress.
    turn.found = claim_or_find({*params_.fleet, fleet_wait, 0}, subject, context, turn.of_fleet);
  }
  turn.servers_refused = budget.is_refused() && turn.of_fleet == nullptr;
  return turn;
}

std::optional<ResolveResult> Resolver::claim_or_find(const Participant& participant, const Subject& subject,
                                                     const RequestContext& context, std::unique_ptr<Claim>& claim) {
  const auto start = params_.clock->steady();
  const bool is_shown = subject.recipe != nullptr && &participant.claims == params_.claims;
  ClaimWait waiting(subject.request, is_shown ? params_.slots : nullptr, *params_.clock, context);
  auto level_start = start;
  for (int level = 0;;) {
    const auto asked = params_.clock->steady();
    const auto left = time_left(participant, context, level_start);
    // The holder of a lower level may still publish during the wait for a higher level. Code of another system can be
    // published while its claim is held: by its holder, or by a process that did not wait.
    const bool polls = level > 0 || subject.external != nullptr;
    const auto wait = polls ? std::min(left, kTakeoverPollInterval) : left;
    Claims::AcquireResult acquired = waiting.acquire(participant.claims, takeover_of(subject.request, level), wait);
    claim = std::move(acquired.claim);
    const bool timed_out = acquired.outcome == Claims::Outcome::TimedOut;
    const bool is_finished = acquired.outcome == Claims::Outcome::ReleasedByOther;
    if (acquired.outcome == Claims::Outcome::Unavailable) {
      params_.emitter.emit(Event::Kind::ClaimUnavailable, "claims", acquired.reason);
    }
    // The process that compiled has digested the headers; this one reuses its digests.
    if (is_finished && subject.recipe != nullptr) params_.digests->reload();
    // Another process may have published since the last lookup, regardless of the outcome. While another process holds
    // a claim, that process queries the servers.
    const auto now = params_.clock->steady();
    const bool ended_early = now - asked < wait;  // the holder is stopped
    const bool is_last = !ended_early && wait == left && !participant.replaces_slow;
    const bool asks_servers = !timed_out || level == participant.max_takeovers || is_last;
    auto found = asks_servers ? find(subject, context) : find_local(subject, context);
    if (found) {
      if (timed_out || is_finished) {
        Event waited = event(Event::Kind::ClaimWaited, subject, context);
        waited.ms = milliseconds_since(*params_.clock, start);
        params_.emitter.emit(waited);
      }
      claim.reset();
      return found;
    }
    if (is_finished) continue;
    if (!timed_out || context.is_cancelled()) return std::nullopt;
    if (wait < left && !ended_early) continue;
    if (level == participant.max_takeovers || is_last) return std::nullopt;
    ++level;
    level_start = now;
  }
}

// Returns the remaining time for one holder, limited by the deadline of the request.
std::chrono::milliseconds Resolver::time_left(const Participant& participant, const RequestContext& context,
                                              std::chrono::nanoseconds start) const {
  using std::chrono::milliseconds;
  const auto passed = std::chrono::duration_cast<milliseconds>(params_.clock->steady() - start);
  milliseconds remaining = participant.wait - passed;
  if (context.deadline) remaining = std::min(remaining, std::chrono::ceil<milliseconds>(context.deadline->remaining()));
  return std::max(remaining, milliseconds(0));
}

std::chrono::milliseconds Resolver::peer_wait_timeout(const Subject& subject) const {
  if (subject.external != nullptr) return kMaxClaimWait;  // the cost is not known; the deadline of the caller counts
  if (params_.history == nullptr) return params_.unknown_cost_wait;
  double cost = 0;
  const auto builds = params_.history->builds(subject.recipe->unit.kind(), subject.recipe->unit.name());
  for (std::size_t i = 0; builds && i < builds->size(); ++i) cost = std::max(cost, (*builds)[i].cost_ms);
  if (cost <= 0) return params_.unknown_cost_wait;
  return std::max(kMinWait, std::chrono::milliseconds(static_cast<std::int64_t>(2 * cost)));
}

Result<ResolveResult> Resolver::compile(const Recipe& recipe, Compiler& compiler, const Subject& subject,
                                        const RequestContext& context) {
  auto compiled = compiler.compile(recipe, context);
  const bool is_miss = compiled || compiled.error().code == Code::CompileFailed;
  if (is_miss && params_.activity != nullptr) params_.activity->count_compile(compiled.has_value());
  if (!compiled) {
    if (params_.emitter) {
      const bool cancelled = compiled.error().code == Code::Cancelled;
      Event failed = event(cancelled ? Event::Kind::Cancelled : Event::Kind::CompileFailed, subject, context);
      failed.message = compiled.error().message;
      params_.emitter.emit(failed);
    }
    return std::move(compiled).error();
  }
  ResolveResult result{
      std::move(compiled->artifact), subject.request, {}, Origin::Compiled, std::move(compiled->uncacheable_reason)};
  if (result.artifact.dependency_set == nullptr)
    result.artifact.dependency_set = std::make_shared<const DependencySet>();
  result.key = artifact_key(subject.request, *result.artifact.dependency_set);
  if (params_.emitter) {
    Event done = event(Event::Kind::Compiled, subject, context);
    done.key = result.key.hex();
    done.origin = to_string(Origin::Compiled);
    done.ms = result.artifact.metadata.cost_ms;
    params_.emitter.emit(done);
  }
  result.is_stored =
      static_cast<bool>(publish(subject, result.key, result.artifact, result.uncacheable_reason, context));
  return result;
}

Status Resolver::publish(const Subject& subject, const ArtifactKey& key, const Artifact& artifact,
                         const std::string& not_cacheable, const RequestContext& context) {
  const Recipe* const recipe = subject.recipe;
  if (subject.store == nullptr && recipe != nullptr) return make_error(Code::Unavailable, "caching is disabled");
  Status put = not_cacheable.empty() ? Status() : Status(make_error(Code::Unsupported, not_cacheable));
  if (subject.store == nullptr) put = make_error(Code::Unavailable, "there is no cache: caching is disabled");
  // The artifact first: a hint without its entry would be a miss; an entry without its hint is only unused.
  if (put) put = subject.store->put(key, artifact, context);
  if (put && recipe != nullptr && !recipe->self_contained) {
    put = subject.store->add_dependency_set(subject.request, *artifact.dependency_set, context);
  }
  if (put && recipe != nullptr && params_.history != nullptr) {
    (void)params_.history->record(*recipe, key, artifact.metadata.cost_ms);
  }
  if (recipe != nullptr) (void)params_.digests->save();
  if (params_.emitter) {
    Event event = this->event(put ? Event::Kind::Published : Event::Kind::NotPublished, subject, context);
    if (recipe == nullptr) {
      event.unit = artifact.metadata.unit;
      event.ms = artifact.metadata.cost_ms;  // no event reports its compile
    }
    event.key = key.hex();
    if (!put) event.message = put.error().message;
    params_.emitter.emit(event);
  }
  return put;
}

}  // namespace kiln
