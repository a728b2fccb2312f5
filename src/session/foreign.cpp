#include <kiln/foreign.hpp>

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "base/error.hpp"
#include "base/guarded.hpp"
#include "base/process_life.hpp"
#include "session/core.hpp"
#include "store/allowance.hpp"

namespace kiln {

struct ForeignCache::State {
  const std::shared_ptr<Session::State> session;
  const std::string system;
};

// The fleet is let go before the host, as it was claimed after it.
struct ForeignCache::Turn::State {
  std::unique_ptr<Claim> of_host;
  std::unique_ptr<Claim> of_fleet;
};

ForeignCache::Turn::Turn(std::unique_ptr<State> state) : state_(std::move(state)) {}
ForeignCache::Turn::Turn(Turn&& other) noexcept = default;
ForeignCache::Turn& ForeignCache::Turn::operator=(Turn&& other) noexcept = default;
ForeignCache::Turn::~Turn() = default;

namespace {

using Nanoseconds = std::chrono::nanoseconds;

// How long between two looks at somebody else's turn: short at first, then a part of what was waited already. The
// longest is also how long a wait goes on that is not wanted any more.
constexpr Nanoseconds kFirstNap = std::chrono::milliseconds(1);
constexpr Nanoseconds kLongestNap = std::chrono::milliseconds(100);
constexpr int kPartOfWait = 8;
constexpr Nanoseconds kLongestWait =
    std::chrono::hours(24 * 365);  // longer waits would overflow the clock's nanoseconds

/// One question: the same road as the Resolver's, over the same parts, for a key that needs no closure and with
/// somebody else's compiler at its end.
class Question {
 public:
  Question(Toolbox& tools, const std::string& system, std::string_view key)
      : parts_(tools.parts()), system_(system), text_(key), key_(Key::foreign(system, key)) {}

  std::optional<ForeignCache::Found> look() const;
  /// The tiers of this host alone: no server is asked.
  std::optional<ForeignCache::Found> look_here() const {
    const Allowance none(Nanoseconds(0));
    return look();
  }
  void tell(Event::Kind kind, const std::string& name, double ms = 0, std::string message = {}) const;

  bool has_claims() const { return parts_.store != nullptr && parts_.claims != nullptr; }
  bool asks_servers() const { return parts_.asks_servers; }
  Nanoseconds server_time() const { return parts_.server_time; }
  /// Either the claim, or what its holder published meanwhile; neither where it is not to be had in this time.
  std::optional<ForeignCache::Found> claim_host(Deadline deadline, std::unique_ptr<Claim>& claim) const;
  std::optional<ForeignCache::Found> claim_fleet(Deadline deadline, std::unique_ptr<Claim>& claim) const;
  Deadline within(Nanoseconds wait) const { return {*parts_.clock, std::clamp(wait, Nanoseconds(0), kLongestWait)}; }
  Status put(Bytes bytes, const std::string& name, double ms) const;

 private:
  /// What claims go by. A hit does not need it.
  RequestKey request() const { return RequestKey::foreign(system_, text_); }

  const Resolver::Parts& parts_;
  const std::string& system_;
  const std::string_view text_;
  const Key key_;
};

void Question::tell(Event::Kind kind, const std::string& name, double ms, std::string message) const {
  if (!parts_.observer) return;
  Event event;
  event.kind = kind;
  event.key = key_.hex();
  event.unit = name.empty() ? event.key.substr(0, 12) : name;
  event.target = system_;
  event.ms = ms;
  event.message = std::move(message);
  parts_.observer.tell(event);
}

std::optional<ForeignCache::Found> Question::look() const {
  if (parts_.store == nullptr) return std::nullopt;
  const auto start = parts_.clock->steady();
  auto hit = parts_.store->get(key_);
  if (!hit) {
    parts_.observer.tell(Event::Kind::CacheUnavailable, "store", hit.error().message);
    return std::nullopt;
  }
  if (!*hit) return std::nullopt;
  Artifact& artifact = (*hit)->artifact;
  // Nobody but a forger puts anything else under such a key.
  if (artifact.target.form != Form::Foreign || artifact.target.architecture != system_) return std::nullopt;
  if (parts_.observer) {
    Event event;
    event.kind = Event::Kind::Hit;
    event.key = key_.hex();
    event.unit = artifact.about.unit;
    event.target = system_;
    event.origin = to_string((*hit)->origin);
    event.ms = milliseconds_since(*parts_.clock, start);
    parts_.observer.tell(event);
  }
  return ForeignCache::Found{std::move(artifact.bytes), (*hit)->origin};
}

std::optional<ForeignCache::Found> Question::claim_host(Deadline deadline, std::unique_ptr<Claim>& claim) const {
  const RequestKey request = this->request();
  const auto start = parts_.clock->steady();
  for (bool waited = false;; waited = true) {
    // Without waiting: a wait in the claims themselves could not be ended within a tenth of a second.
    Claims::Answer answer = parts_.claims->acquire(request, std::chrono::milliseconds(0));
    if (answer.outcome == Claims::Outcome::Unavailable) {
      parts_.observer.tell(Event::Kind::ClaimUnavailable, "claims", answer.reason);
      return std::nullopt;
    }
    // Somebody may have published between our look and our claim, or while we napped.
    if (auto found = look_here()) {
      if (waited) tell(Event::Kind::Waited, {}, milliseconds_since(*parts_.clock, start));
      return found;
    }
    claim = std::move(answer.claim);
    if (claim != nullptr) return std::nullopt;
    const Nanoseconds left = deadline.left();
    if (left <= Nanoseconds(0) || process_is_ending() || Allowance::over()) return std::nullopt;
    const Nanoseconds passed = parts_.clock->steady() - start;
    parts_.clock->sleep(std::min(left, std::clamp(passed / kPartOfWait, kFirstNap, kLongestNap)));
  }
}

std::optional<ForeignCache::Found> Question::claim_fleet(Deadline deadline, std::unique_ptr<Claim>& claim) const {
  if (parts_.fleet == nullptr) return std::nullopt;
  const auto start = parts_.clock->steady();
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left());
    Claims::Answer answer = parts_.fleet->acquire(request(), left);
    claim = std::move(answer.claim);
    if (answer.outcome == Claims::Outcome::Unavailable) {
      parts_.observer.tell(Event::Kind::ClaimUnavailable, "claims", answer.reason);
    }
    if (answer.outcome == Claims::Outcome::Unavailable || answer.outcome == Claims::Outcome::TimedOut) {
      return std::nullopt;
    }
    if (auto found = look()) {
      if (answer.outcome == Claims::Outcome::Finished) {
        tell(Event::Kind::Waited, {}, milliseconds_since(*parts_.clock, start));
      }
      claim.reset();
      return found;
    }
    if (claim != nullptr) return std::nullopt;
  }
}

Status Question::put(Bytes bytes, const std::string& name, double ms) const {
  Artifact artifact;
  artifact.bytes = std::move(bytes);
  artifact.target = Target::foreign(system_);
  artifact.about.unit = name.empty() ? key_.hex().substr(0, 12) : name;
  artifact.about.compiler = system_;
  artifact.about.cost_ms = std::isfinite(ms) && ms > 0 ? ms : 0;
  Status kept = parts_.store != nullptr ? parts_.store->put(key_, artifact)
                                        : failure(Code::Unavailable, "there is no cache: caching is switched off");
  tell(kept ? Event::Kind::Published : Event::Kind::NotPublished, artifact.about.unit, 0,
       kept ? std::string() : kept.error().message);
  return kept;
}

}  // namespace

const std::string& ForeignCache::system() const { return state_->system; }

std::optional<ForeignCache::Found> ForeignCache::get(std::string_view key) const try {
  const Question question(state_->session->core().toolbox(), state_->system, key);
  const Allowance allowance(question.server_time());
  auto found = question.look();
  if (!found) question.tell(Event::Kind::Miss, {});
  return found;
} catch (const std::bad_alloc&) {
  return std::nullopt;  // as good as absent: whoever asks can compile it
}

ForeignCache::Answer ForeignCache::get_or_claim(std::string_view key, Nanoseconds wait,
                                                const std::function<bool()>& over) const try {
  const Question question(state_->session->core().toolbox(), state_->system, key);
  Allowance allowance(question.server_time(), over);
  const Deadline deadline = question.within(wait);
  // Of a host's processes the one that has the turn asks the servers, and the others find what it brought.
  const bool claims_first = question.asks_servers() && question.has_claims();
  Answer answer;
  answer.found = claims_first ? question.look_here() : question.look();
  if (answer.found) return answer;
  auto turn = std::make_unique<Turn::State>();
  if (question.has_claims() && !process_is_ending()) answer.found = question.claim_host(deadline, turn->of_host);
  if (!answer.found && claims_first) answer.found = question.look();
  if (answer.found) return answer;
  question.tell(Event::Kind::Miss, {});
  if (turn->of_host == nullptr) return answer;
  // Another host may have published since this one was told that there is nothing.
  allowance.ask_afresh();
  answer.found = question.claim_fleet(deadline, turn->of_fleet);
  if (!answer.found) answer.turn = Turn(std::move(turn));
  return answer;
} catch (const std::bad_alloc&) {
  return {};  // whatever was claimed is let go
}

Status ForeignCache::put(std::string_view key, Bytes bytes, const std::string& name, double ms) const {
  return guarded(
      [&] { return Question(state_->session->core().toolbox(), state_->system, key).put(std::move(bytes), name, ms); });
}

namespace {

/// Those of a system's entries that a cache has.
Result<std::vector<Key>> keys_in(DiskStore& cache, const std::string& system) {
  const auto listed = cache.list();
  if (!listed) return listed.error();
  std::vector<Key> keys;
  for (const DiskStore::Listed& entry : *listed) {
    if (entry.target == Target::foreign(system)) keys.push_back(entry.key);
  }
  return keys;
}

}  // namespace

bool ForeignCache::remove(std::string_view key) const {
  const auto& disks = state_->session->core().toolbox().disks();
  return !disks.empty() && disks.front()->remove(Key::foreign(state_->system, key));
}

Result<std::size_t> ForeignCache::count() const {
  return guarded([&]() -> Result<std::size_t> {
    const auto& disks = state_->session->core().toolbox().disks();
    if (disks.empty()) return std::size_t{0};
    const auto keys = keys_in(*disks.front(), state_->system);
    if (!keys) return keys.error();
    return keys->size();
  });
}

Result<std::size_t> ForeignCache::clear() const {
  return guarded([&]() -> Result<std::size_t> {
    const auto& disks = state_->session->core().toolbox().disks();
    if (disks.empty()) return std::size_t{0};
    const auto keys = keys_in(*disks.front(), state_->system);
    if (!keys) return keys.error();
    std::size_t removed = 0;
    for (const Key& key : *keys) removed += disks.front()->remove(key) ? 1 : 0;
    return removed;
  });
}

ForeignCache Session::foreign(const std::string& system) {
  return ForeignCache(std::make_shared<ForeignCache::State>(ForeignCache::State{state_, system}));
}

}  // namespace kiln
