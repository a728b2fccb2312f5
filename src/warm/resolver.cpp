#include "warm/resolver.hpp"

#include <algorithm>

#include "base/error.hpp"

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
      if (check(closure, places, *parts_.digests)) continue;
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

Result<Answer> Resolver::get(const Recipe& recipe, Compiler& compiler, const Bytes* refused) {
  const auto start = parts_.clock->steady();
  const auto finish = [&](Answer answer) {
    answer.ms = milliseconds_since(*parts_.clock, start);
    answer.flow = recipe.flow;
    return answer;
  };
  auto found = look(recipe, refused);
  if (found && *found) return finish(std::move(**found));
  if (parts_.observer) parts_.observer.tell(event(Event::Kind::Miss, recipe));
  if (!parts_.may_compile) {
    return failure(Code::Refused,
                   "unit '" + recipe.unit.label() + "' for " + recipe.target.name() +
                       " is in no tier (asked: " + (parts_.store != nullptr ? parts_.store->describe() : "none") +
                       ") and compiling is off (KILN_COMPILE=never)");
  }
  const RequestKey request = recipe.request_key();
  std::unique_ptr<Claim> claim;
  const auto give_up = start + std::chrono::nanoseconds(wait_for_others(recipe));
  while (parts_.claims != nullptr && parts_.store != nullptr && claim == nullptr) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(give_up - parts_.clock->steady());
    Claims::Answer answer = parts_.claims->acquire(request, std::max(left, std::chrono::milliseconds(0)));
    claim = std::move(answer.claim);
    if (answer.outcome == Claims::Outcome::Unavailable) {
      parts_.observer.tell(Event::Kind::ClaimUnavailable, "claims", answer.reason);
    }
    if (answer.outcome == Claims::Outcome::Unavailable || answer.outcome == Claims::Outcome::TimedOut) break;
    // Whoever compiled it has digested its headers, and we need not.
    if (answer.outcome == Claims::Outcome::Finished) parts_.digests->reload();
    // Somebody may have published between our look and our claim.
    found = look(recipe, refused);
    if (found && *found) {
      if (answer.outcome == Claims::Outcome::Finished && parts_.observer) {
        Event waited = event(Event::Kind::Waited, recipe);
        waited.ms = milliseconds_since(*parts_.clock, start);
        parts_.observer.tell(waited);
      }
      return finish(std::move(**found));
    }
  }
  auto compiled = this->compile(recipe, request, compiler);
  if (!compiled) return std::move(compiled).error();
  return finish(std::move(*compiled));
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
