// SPDX-License-Identifier: Apache-2.0
// The part of the resolver that looks up bundles and stores.
#include "base/error.hpp"
#include "engine/explain.hpp"
#include "engine/resolver.hpp"

namespace kiln {

std::optional<ResolveResult> Resolver::find_in_bundles(const CompileRequest& request, const RequestContext& context,
                                                       const Bytes* rejected) {
  if (params_.bundles == nullptr || params_.bundles_exact) return std::nullopt;
  const auto start = params_.clock->steady();
  const Target target = effective_target(request.unit, request.target);
  auto found = params_.bundles->find(request.unit, target, context.task_id, rejected);
  if (!found) return std::nullopt;
  Bundle::Match& match = found->match;
  ResolveResult result{std::move(match.artifact), match.request, match.key, Origin::Bundle};
  result.artifact.dependency_set = std::make_shared<const DependencySet>();
  result.is_stored = true;
  result.ms = milliseconds_since(*params_.clock, start);
  result.flow = context.task_id;
  count_hit(result);
  if (params_.emitter) {
    Event hit = make_event(Event::Kind::Hit, request.unit, target, context.task_id);
    hit.message = found->bundle + ", for " + result.artifact.target.name() + " by " + result.artifact.metadata.compiler;
    emit_hit(std::move(hit), result);
  }
  return result;
}

std::optional<ResolveResult> Resolver::find(const Subject& subject, const RequestContext& context) {
  if (subject.store == nullptr) return std::nullopt;
  const auto start = params_.clock->steady();
  std::optional<ResolveResult> result = find_in_store(subject, context);
  if (result) {
    result->ms = milliseconds_since(*params_.clock, start);
    result->flow = context.task_id;
    count_hit(*result);
    if (params_.emitter) emit_hit(event(Event::Kind::Hit, subject, context), *result);
  }
  // Saved digests speed up the lookup of the next process; a failure to save them is ignored.
  if (subject.recipe != nullptr) (void)params_.digests->save();
  return result;
}

std::optional<ResolveResult> Resolver::find_local(const Subject& subject, const RequestContext& context) {
  ServerTimeBudget none(std::chrono::nanoseconds(0));
  return find(subject, context.with_budget(none));
}

std::optional<ResolveResult> Resolver::find_in_store(const Subject& subject, const RequestContext& context) {
  if (subject.external != nullptr) {
    std::optional<ResolveResult> result = find_by_key(subject, subject.external->artifact, context);
    // Only a forged entry has another form or system under such a key.
    if (result && !(result->artifact.target == Target::external(subject.external->system))) return std::nullopt;
    return result;
  }
  const auto ask = [&](DependencySet dependency_set) {
    auto result = find_by_key(subject, artifact_key(subject.request, dependency_set), context);
    if (result) {
      result->artifact.dependency_set = std::make_shared<const DependencySet>(std::move(dependency_set));
    }
    return result;
  };
  if (subject.recipe->self_contained) return ask({});
  const PathRoots roots = subject.recipe->path_roots();
  // The newest dependency set is almost always correct, and decoding all sixteen would cost more than the hit.
  for (const std::size_t limit : {std::size_t{1}, Store::kMaxDependencySets}) {
    auto dependency_sets = subject.store->dependency_sets(subject.request, limit, context);
    if (!dependency_sets) {
      params_.emitter.emit(Event::Kind::CacheUnavailable, "store", dependency_sets.error().message);
      return std::nullopt;
    }
    for (DependencySet& dependency_set : *dependency_sets) {
      if (dependency_checks_->check(dependency_set, roots, *params_.digests, context.requested_at)) continue;
      if (auto result = ask(std::move(dependency_set))) return result;
    }
    if (dependency_sets->size() < limit) break;
  }
  return std::nullopt;
}

std::optional<ResolveResult> Resolver::find_by_key(const Subject& subject, const ArtifactKey& key,
                                                   const RequestContext& context) {
  auto hit = subject.rejected == nullptr ? subject.store->get(key, context)
                                         : subject.store->get_excluding(key, *subject.rejected, context);
  if (!hit) {
    params_.emitter.emit(Event::Kind::CacheUnavailable, "store", hit.error().message);
    return std::nullopt;
  }
  if (!*hit) return std::nullopt;
  ResolveResult result{std::move((*hit)->artifact), subject.request, key, (*hit)->origin};
  result.is_stored = true;
  return result;
}

Event Resolver::event(Event::Kind kind, const Subject& subject, const RequestContext& context) const {
  if (subject.recipe != nullptr) {
    return make_event(kind, subject.recipe->unit, subject.recipe->target, context.task_id);
  }
  Event event;
  event.kind = kind;
  event.key = subject.external->artifact.hex();
  event.unit = event.key.substr(0, 12);
  event.target = subject.external->system;
  return event;
}

void Resolver::count_hit(const ResolveResult& result) const {
  if (params_.activity == nullptr) return;
  params_.activity->count_hit(result.origin, result.artifact.metadata.cost_ms - result.ms);
}

void Resolver::emit_hit(Event hit, const ResolveResult& result) const {
  if (result.artifact.target.form == Form::External) hit.unit = result.artifact.metadata.unit;
  hit.key = result.key.hex();
  hit.origin = to_string(result.origin);
  hit.ms = result.ms;
  params_.emitter.emit(hit);
}

// Emitted before the compile, because afterwards the history contains this build too.
void Resolver::emit_miss(const Subject& subject, const RequestContext& context) const {
  if (!params_.emitter) return;
  Event miss = event(Event::Kind::Miss, subject, context);
  if (subject.recipe != nullptr) {
    ServerTimeBudget none(std::chrono::nanoseconds(0));  // local knowledge only: no server is queried
    miss.message = explain_miss(*subject.recipe, params_, context.with_budget(none)).summary;
    if (miss.message.rfind("miss: ", 0) == 0) miss.message.erase(0, 6);  // the event kind already says this
  } else {
    miss.message = "no tier has an entry for this key";
  }
  params_.emitter.emit(miss);
}

}  // namespace kiln
