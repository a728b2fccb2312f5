#include "warm/resolver.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "store/allowance.hpp"
#include "warm/explain.hpp"

namespace kiln {
namespace {

// How long to wait for somebody else's compile: twice what the unit cost before, and this where that is unknown.
constexpr std::chrono::milliseconds kUnknownCostWait = std::chrono::seconds(30);
constexpr std::chrono::milliseconds kShortestWait = std::chrono::seconds(2);

}  // namespace

Event Resolver::event(Event::Kind kind, const Recipe& recipe) {
  return event_of(kind, recipe.unit, recipe.target, recipe.flow);
}

std::optional<Answer> Resolver::find(const Recipe& recipe, const RequestKey& request, const Bytes* refused) {
  const auto ask = [&](Closure closure) -> std::optional<Answer> {
    const Key key = key_of(request, closure);
    auto hit = refused == nullptr ? parts_.store->get(key) : parts_.store->get_instead(key, *refused);
    if (!hit) {
      parts_.observer.tell(Event::Kind::CacheUnavailable, "store", hit.error().message);
      return std::nullopt;
    }
    if (!*hit) return std::nullopt;
    Answer answer{std::move((*hit)->artifact), request, key, (*hit)->origin};
    answer.artifact.closure = std::make_shared<const Closure>(std::move(closure));
    return answer;
  };
  if (recipe.closed) return ask({});
  const Places places = recipe.places();
  // The newest closure is nearly always the right one, and decoding all sixteen would cost more than the hit.
  for (const std::size_t limit : {std::size_t{1}, Store::kMostClosures}) {
    auto closures = parts_.store->closures(request, limit);
    if (!closures) {
      parts_.observer.tell(Event::Kind::CacheUnavailable, "store", closures.error().message);
      return std::nullopt;
    }
    for (Closure& closure : *closures) {
      if (checked_->check(closure, places, *parts_.digests)) continue;
      if (auto answer = ask(std::move(closure))) return answer;
    }
    if (closures->size() < limit) break;
  }
  return std::nullopt;
}

Result<std::optional<Answer>> Resolver::look(const Recipe& recipe, const Bytes* refused) {
  if (parts_.store == nullptr) return std::optional<Answer>();
  const auto start = parts_.clock->steady();
  std::optional<Answer> answer = find(recipe, recipe.request_key(), refused);
  if (answer) {
    answer->ms = milliseconds_since(*parts_.clock, start);
    answer->flow = recipe.flow;
    if (parts_.observer) {
      Event hit = event(Event::Kind::Hit, recipe);
      hit.key = answer->key.hex();
      hit.origin = to_string(answer->origin);
      hit.ms = answer->ms;
      parts_.observer.tell(hit);
    }
  }
  // What was learnt about files makes the next process's lookup quick; it is not worth failing for.
  (void)parts_.digests->save();
  return answer;
}

Result<std::optional<Answer>> Resolver::look_here(const Recipe& recipe, const Bytes* refused) {
  const Allowance none(std::chrono::nanoseconds(0));
  return look(recipe, refused);
}

Result<Answer> Resolver::get(const Recipe& recipe, Compiler& compiler, const Bytes* refused) {
  const auto start = parts_.clock->steady();
  const auto finish = [&](Answer answer) {
    answer.ms = milliseconds_since(*parts_.clock, start);
    answer.flow = recipe.flow;
    return answer;
  };
  Allowance allowance(parts_.server_time);
  // Of a host's processes the one that has claimed a request asks the servers, and the others find what it brought.
  const bool claims_first = parts_.asks_servers && parts_.claims != nullptr && parts_.may_compile;
  auto found = claims_first ? look_here(recipe, refused) : look(recipe, refused);
  if (found && *found) return finish(std::move(**found));
  if (!claims_first) tell_of_miss(recipe);
  if (!parts_.may_compile) {
    return failure(Code::Refused,
                   "unit '" + recipe.unit.label() + "' for " + recipe.target.name() +
                       " is in no tier (asked: " + (parts_.store != nullptr ? parts_.store->describe() : "none") +
                       ") and compiling is off (KILN_COMPILE=never)");
  }
  const auto wait = wait_for_others(recipe);
  // Whoever takes over from a host that died needs a lease to find that out, and then his own time, which may begin
  // with finding out the same of another.
  const auto fleet_wait = parts_.fleet != nullptr ? wait + 2 * parts_.lease : std::chrono::milliseconds(0);
  std::unique_ptr<Claim> of_host;
  std::unique_ptr<Claim> of_fleet;
  if (parts_.claims != nullptr && parts_.store != nullptr) {
    // Whoever holds the host may have to wait for the fleet first.
    auto published = claim_or_find(*parts_.claims, wait + fleet_wait, recipe, refused, of_host);
    if (published) return finish(std::move(*published));
  }
  if (claims_first && of_host == nullptr) {
    // Nobody asks for this process: there are no locks here, or their holder takes too long.
    found = look(recipe, refused);
    if (found && *found) return finish(std::move(**found));
  }
  if (claims_first) tell_of_miss(recipe);
  if (parts_.fleet != nullptr && parts_.store != nullptr) {
    // Another host may have published since this one was told that there is nothing.
    allowance.ask_afresh();
    auto published = claim_or_find(*parts_.fleet, fleet_wait, recipe, refused, of_fleet);
    if (published) return finish(std::move(*published));
  }
  if (recipe.stop.stop_requested())
    return failure(Code::Cancelled, "unit '" + recipe.unit.label() + "' is not wanted any more");
  auto compiled = this->compile(recipe, recipe.request_key(), compiler);
  if (!compiled) return std::move(compiled).error();
  return finish(std::move(*compiled));
}

// Why it is one is known now: once it is compiled, the history has this build too.
void Resolver::tell_of_miss(const Recipe& recipe) const {
  if (!parts_.observer) return;
  const Allowance none(std::chrono::nanoseconds(0));  // what is known here: no server is asked for it
  Event miss = event(Event::Kind::Miss, recipe);
  miss.message = explain_miss(recipe, parts_).summary;
  if (miss.message.rfind("miss: ", 0) == 0) miss.message.erase(0, 6);  // the kind says that already
  parts_.observer.tell(miss);
}

std::optional<Answer> Resolver::claim_or_find(Claims& claims, std::chrono::milliseconds wait, const Recipe& recipe,
                                              const Bytes* refused, std::unique_ptr<Claim>& claim) {
  const auto start = parts_.clock->steady();
  const RequestKey request = recipe.request_key();
  while (claim == nullptr) {
    const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(parts_.clock->steady() - start);
    Claims::Answer answer = claims.acquire(request, std::max(wait - passed, std::chrono::milliseconds(0)), recipe.stop);
    claim = std::move(answer.claim);
    if (answer.outcome == Claims::Outcome::Unavailable) {
      parts_.observer.tell(Event::Kind::ClaimUnavailable, "claims", answer.reason);
    }
    if (answer.outcome == Claims::Outcome::Unavailable || answer.outcome == Claims::Outcome::TimedOut) break;
    // Whoever compiled it has digested its headers, and we need not.
    if (answer.outcome == Claims::Outcome::Finished) parts_.digests->reload();
    // Somebody may have published between our look and our claim.
    auto found = look(recipe, refused);
    if (!found || !*found) continue;
    if (answer.outcome == Claims::Outcome::Finished && parts_.observer) {
      Event waited = event(Event::Kind::Waited, recipe);
      waited.ms = milliseconds_since(*parts_.clock, start);
      parts_.observer.tell(waited);
    }
    return std::move(**found);
  }
  return std::nullopt;
}

std::chrono::milliseconds Resolver::wait_for_others(const Recipe& recipe) const {
  if (parts_.history == nullptr) return kUnknownCostWait;
  double cost = 0;
  const auto builds = parts_.history->builds(recipe.unit.kind(), recipe.unit.name());
  for (std::size_t i = 0; builds && i < builds->size(); ++i) cost = std::max(cost, (*builds)[i].cost_ms);
  if (cost <= 0) return kUnknownCostWait;
  return std::max(kShortestWait, std::chrono::milliseconds(static_cast<std::int64_t>(2 * cost)));
}

Result<Answer> Resolver::compile(const Recipe& recipe, const RequestKey& request, Compiler& compiler) {
  auto compiled = compiler.compile(recipe);
  if (!compiled) {
    if (parts_.observer) {
      const bool cancelled = compiled.error().code == Code::Cancelled;
      Event failed = event(cancelled ? Event::Kind::Cancelled : Event::Kind::CompileFailed, recipe);
      failed.message = compiled.error().message;
      parts_.observer.tell(failed);
    }
    return std::move(compiled).error();
  }
  Answer answer{std::move(compiled->artifact), request, {}, Origin::Compiled, compiled->not_cacheable};
  if (answer.artifact.closure == nullptr) answer.artifact.closure = std::make_shared<const Closure>();
  answer.key = key_of(request, *answer.artifact.closure);
  if (parts_.observer) {
    Event done = event(Event::Kind::Compiled, recipe);
    done.key = answer.key.hex();
    done.origin = "compiled";
    done.ms = answer.artifact.about.cost_ms;
    parts_.observer.tell(done);
  }
  publish(recipe, answer, compiled->not_cacheable);
  return answer;
}

void Resolver::publish(const Recipe& recipe, const Answer& answer, const std::string& not_cacheable) {
  if (parts_.store == nullptr) return;
  std::string problem = not_cacheable;
  if (problem.empty()) {
    // The artifact first: a hint without its entry would be a miss, an entry without its hint is only unused.
    Status put = parts_.store->put(answer.key, answer.artifact);
    if (put && !recipe.closed) put = parts_.store->add_closure(answer.request, *answer.artifact.closure);
    if (!put) problem = put.error().message;
  }
  if (problem.empty() && parts_.history != nullptr) {
    (void)parts_.history->record(recipe, answer.key, answer.artifact.about.cost_ms);
  }
  (void)parts_.digests->save();
  if (!parts_.observer) return;
  Event event = this->event(problem.empty() ? Event::Kind::Published : Event::Kind::NotPublished, recipe);
  event.key = answer.key.hex();
  event.message = problem;
  parts_.observer.tell(event);
}

}  // namespace kiln
