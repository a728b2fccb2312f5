// SPDX-License-Identifier: Apache-2.0
#include "remote/guarded_store.hpp"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "base/catch_to_error.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "remote/entry_verifier.hpp"
#include "remote/negative_cache.hpp"
#include "remote/query_deadline.hpp"
#include "remote/wait_account.hpp"

namespace kiln {
namespace {

using Time = std::chrono::nanoseconds;

// Maximum compile time for which a hit is credited. It comes from a server.
constexpr std::chrono::duration<double, std::milli> kMaxCredit = std::chrono::hours(1);

std::uint64_t bytes_of(const DependencySet& dependency_set) {
  std::uint64_t bytes = sizeof dependency_set;
  for (const DependencySet::Dependency& item : dependency_set.items) bytes += sizeof item + item.name.size();
  return bytes;
}

}  // namespace

// The result of a server lookup: an artifact, or dependency sets. The thread that sends the request writes it; other
// threads read it after `done` is true, which the mutex of the store guards.
struct GuardedStore::Lookup {
  bool done = false;
  bool is_cancelled = false;  // the caller of that thread canceled it, so it says nothing about the name
  std::optional<Hit> hit = {};
  std::vector<DependencySet> dependency_sets = {};
};

class GuardedStore::State {
 public:
  explicit State(Params params)
      : params_(std::move(params)), absent_(params_.policy, Jitter::from_random_seed()), account_(params_.policy) {}

  using Ask = std::function<Status(Store&, Lookup&, const RequestContext&)>;

  // Looks up a name. Returns null if nothing is known about it.
  std::shared_ptr<const Lookup> look_up(const Digest& name, const Ask& ask, const RequestContext& context) {
    ServerTimeBudget* budget = context.server_budget;
    const bool fresh = budget != nullptr && budget->bypasses_negative_cache();
    params_.guard->recheck(budget);
    Time allowed = params_.guard->time_budget(budget);
    const bool was_background = budget != nullptr && budget->is_background();
    if (allowed <= Time(0) && budget != nullptr && budget->is_background()) budget->refuse();
    const auto lookup = std::make_shared<Lookup>();
    std::shared_ptr<const Lookup> joined;
    {
      const MutexLock lock(mutex_);
      if (allowed <= Time(0) || !admits(budget)) {
        ++counts_.skipped;
        return nullptr;
      }
      // A caller may have begun to wait for the request, and then has less time.
      if (was_background && !budget->is_background()) allowed = params_.guard->time_budget(budget);
      if (allowed <= Time(0)) {
        ++counts_.skipped;
        return nullptr;
      }
      // A caller that bypasses the negative cache must not use an older result, nor join an older request.
      if (!fresh && absent_.absent(name, params_.clock->steady())) {
        ++counts_.deduplicated;
        return nullptr;
      }
      if (const auto same = in_flight_.find(name); !fresh && same != in_flight_.end()) {
        ++counts_.deduplicated;
        joined = wait_for(same->second, allowed, context);
        if (joined == nullptr || !joined->is_cancelled) return joined;
      } else {
        ++counts_.requests;
        in_flight_.insert_or_assign(name, lookup);
      }
    }
    if (joined != nullptr) return look_up(name, ask, context);
    const LookupGuard ended{*this, name, lookup};
    bool answered = ask_server(*lookup, ask, allowed, context);
    if (!answered && budget != nullptr && budget->is_background() && !lookup->is_cancelled) {
      // One more attempt with the timeout of a slow server. After that, the request does not wait for other hosts
      // either.
      const Time slow = params_.guard->time_budget(budget);
      answered = slow > allowed && ask_server(*lookup, ask, slow, context);
      if (!answered && !lookup->is_cancelled) budget->refuse();
    }
    if (answered && !lookup->hit && lookup->dependency_sets.empty()) {
      const MutexLock lock(mutex_);
      absent_.remember(name, params_.clock->steady());
    }
    return lookup;
  }

  // Removes a negative cache entry after this host has compiled or uploaded the entry.
  void invalidate_negative_entry(const Digest& name) {
    const MutexLock lock(mutex_);
    absent_.forget(name);
  }
  // Records a hit that saved a compile of this time.
  void count_saved(Time cost) {
    const MutexLock lock(mutex_);
    account_.saved(cost);
  }
  void count_upload(bool sent) {
    const MutexLock lock(mutex_);
    ++(sent ? counts_.uploaded : counts_.dropped);
  }
  Counts counts() const {
    const MutexLock lock(mutex_);
    return counts_;
  }
  const Params& params() const { return params_; }

 private:
  // Marks a lookup as done at its end, also after an exception (out of memory), so that no thread waits for it any
  // longer.
  struct LookupGuard {
    State& state;
    const Digest& name;
    const std::shared_ptr<Lookup>& lookup;
    ~LookupGuard() {
      const MutexLock lock(state.mutex_);
      lookup->done = true;
      const auto own = state.in_flight_.find(name);
      if (own != state.in_flight_.end() && own->second == lookup) state.in_flight_.erase(own);
      state.answered_.notify_all();
    }
  };

  // Returns whether a request may ask the server, or may go on to ask it. Requests that a caller waits for may.
  // A background request of a host whose first requests were not answered yet waits for an answer.
  bool admits(ServerTimeBudget* budget) KILN_REQUIRES(mutex_) {
    if (budget == nullptr || !budget->is_background() || budget->is_admitted()) return true;
    const unsigned recoveries = params_.guard->recoveries();
    if (std::exchange(recoveries_, recoveries) != recoveries) account_.on_recovered();
    const QueryDeadline wait(*params_.clock, params_.policy.query_timeout, budget, Time(0));
    const Deadline& deadline = wait.deadline();
    WaitAccount::Admission admission = account_.admit(params_.clock->steady());
    while (admission == WaitAccount::Admission::Wait && budget->is_background() && deadline.remaining() > Time(0)) {
      params_.clock->wait_until(answered_, mutex_, deadline);
      admission = account_.admit(params_.clock->steady());
    }
    if (admission == WaitAccount::Admission::Skip) {
      budget->refuse();
      return false;
    }
    budget->admit();
    return true;
  }

  // The query of a lookup in the account. Requests that a caller waits for are bounded by their budget instead.
  class Query {
   public:
    Query(State& state, const ServerTimeBudget* budget)
        : state_(budget != nullptr && budget->is_background() ? &state : nullptr),
          start_(state.params_.clock->steady()) {
      if (state_ == nullptr) return;
      const MutexLock lock(state_->mutex_);
      state_->account_.begin_query();
    }
    ~Query() {
      if (state_ == nullptr) return;
      const MutexLock lock(state_->mutex_);
      state_->account_.end_query(state_->params_.clock->steady() - start_, answered_);
      state_->answered_.notify_all();
    }
    void answered() { answered_ = true; }
    Query(const Query&) = delete;
    Query& operator=(const Query&) = delete;

   private:
    State* const state_;
    const Time start_;
    bool answered_ = false;
  };

  // Returns whether the server responded. A response that must be rejected counts.
  bool ask_server(Lookup& lookup, const Ask& ask, Time allowed, const RequestContext& context) {
    Query query(*this, context.server_budget);
    ServerGuard::Call question(*params_.guard, context.server_budget, allowed);
    ServerTimeBudget budget(allowed);  // the rest of the caller's, without the part that is reserved
    const QueryDeadline limit(*params_.clock, allowed, context.server_budget, params_.guard->urgent_timeout(),
                              interrupt_of(context));
    RequestContext within = context.with_budget(budget);
    within.deadline = limit.deadline();
    const Status asked = ask(*params_.inner, lookup, within);
    lookup.is_cancelled = !asked && context.is_cancelled();
    if (!asked) {
      if (lookup.is_cancelled) {
        question.cancelled();
      } else if (limit.is_ended_by_caller()) {
        question.timed_out(
            make_error(Code::TimedOut, params_.inner->describe() + ": no response when a caller waited for it"));
      } else {
        question.failed(asked.error());
      }
    }
    const bool answered = asked.has_value() || asked.error().code == Code::Corrupt;
    if (answered || lookup.is_cancelled) query.answered();
    return answered;
  }

  static InterruptCheck* interrupt_of(const RequestContext& context) {
    return context.deadline ? context.deadline->interrupt() : nullptr;
  }

  std::shared_ptr<const Lookup> wait_for(std::shared_ptr<const Lookup> lookup, Time allowed,
                                         const RequestContext& context) KILN_REQUIRES(mutex_) {
    const Time start = params_.clock->steady();
    const Time longest = context.server_budget != nullptr ? context.server_budget->capped(allowed) : allowed;
    const QueryDeadline limit(*params_.clock, longest, context.server_budget, params_.guard->urgent_timeout(),
                              interrupt_of(context));
    const Deadline& deadline = limit.deadline();
    while (!lookup->done && deadline.remaining() > Time(0)) params_.clock->wait_until(answered_, mutex_, deadline);
    if (context.server_budget != nullptr) context.server_budget->charge(params_.clock->steady() - start);
    if (!lookup->done) return nullptr;
    return lookup;
  }

  const Params params_;
  mutable Mutex mutex_;
  Condition answered_;
  NegativeCache absent_ KILN_GUARDED_BY(mutex_);
  WaitAccount account_ KILN_GUARDED_BY(mutex_);
  unsigned recoveries_ KILN_GUARDED_BY(mutex_) = 0;  // of the guard, that the account knows
  std::unordered_map<Digest, std::shared_ptr<Lookup>> in_flight_ KILN_GUARDED_BY(mutex_);
  Counts counts_ KILN_GUARDED_BY(mutex_);
};

// A pending upload. One that is destroyed before it was sent counts as dropped.
class GuardedStore::Upload {
 public:
  using Send = std::function<Status(Store&, const RequestContext&)>;

  // `what` contains everything that events report about the upload.
  Upload(std::shared_ptr<State> state, Digest name, Event what, Send send)
      : state_(std::move(state)), name_(name), what_(std::move(what)), send_(std::move(send)) {}
  ~Upload() {
    if (!over_) ignore_failures([&] { drop("the session ended before the upload"); });
  }
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  // Sends the upload; runs on the background queue.
  void run() {
    const Params& params = state_->params();
    if (!params.guard->is_available()) return drop_unavailable();
    const Time start = params.clock->steady();
    const Status sent = [&] {
      const std::function<bool()> keep_waiting = [&] {
        return !params.background_queue->is_stopping() && params.guard->is_available();
      };
      InterruptCheck interrupt(&keep_waiting);
      ServerTimeBudget budget(params.policy.upload_timeout);
      const Deadline deadline(*params.clock, params.policy.upload_timeout, &interrupt);
      const RequestContext context{.deadline = deadline, .server_budget = &budget};
      ServerGuard::Call question(*params.guard, &budget, params.policy.upload_timeout);
      Status answer = send_(*params.inner, context);
      if (!answer && context.is_cancelled()) {
        question.cancelled();
      } else if (!answer && answer.error().code != Code::Denied) {
        question.failed(answer.error());  // a server that denies writes is still usable for reads
      }
      return answer;
    }();
    if (!sent) return drop(sent.error().message);
    over_ = true;
    state_->count_upload(true);
    state_->invalidate_negative_entry(name_);
    if (what_.key.empty()) return;  // no event for dependency sets
    what_.ms = milliseconds_since(*params.clock, start);
    emit(Event::Kind::Uploaded, "");
  }

  void drop(const std::string& reason) {
    over_ = true;
    state_->count_upload(false);
    emit(Event::Kind::UploadDropped, reason);
  }
  void drop_unavailable() { drop("the server is unavailable"); }

 private:
  void emit(Event::Kind kind, const std::string& reason) {
    if (!state_->params().emitter) return;
    what_.kind = kind;
    what_.origin = state_->params().inner->describe();
    what_.message = reason;
    state_->params().emitter.emit(what_);
  }

  const std::shared_ptr<State> state_;
  const Digest name_;
  Event what_;
  const Send send_;  // keeps an artifact or a dependency set until it is sent
  bool over_ = false;
};

GuardedStore::GuardedStore(Params params) : state_(std::make_shared<State>(std::move(params))) {}

Result<std::optional<Hit>> GuardedStore::get(const ArtifactKey& key, const RequestContext& context) {
  const auto ask = [&](Store& inner, Lookup& lookup, const RequestContext& within) -> Status {
    auto hit = inner.get(key, within);
    if (!hit) return std::move(hit).error();
    lookup.hit = std::move(*hit);
    return {};
  };
  const auto found = state_->look_up(key.digest, ask, context);
  if (found == nullptr || !found->hit) return std::optional<Hit>();
  const std::chrono::duration<double, std::milli> cost(found->hit->artifact.metadata.cost_ms);
  state_->count_saved(std::chrono::duration_cast<Time>(std::clamp(cost, cost.zero(), kMaxCredit)));
  return found->hit;
}

Result<std::vector<DependencySet>> GuardedStore::dependency_sets(const RequestKey& request, std::size_t limit,
                                                                 const RequestContext& context) {
  // Always reads all of them, which are one object: a thread that joins this lookup may need more than this caller.
  const auto ask = [&](Store& inner, Lookup& lookup, const RequestContext& within) -> Status {
    auto dependency_sets = inner.dependency_sets(request, kMaxDependencySets, within);
    if (!dependency_sets) return std::move(dependency_sets).error();
    lookup.dependency_sets = std::move(*dependency_sets);
    return {};
  };
  const auto found = state_->look_up(hints_digest(request), ask, context);
  if (found == nullptr) return std::vector<DependencySet>();
  const auto count = static_cast<std::ptrdiff_t>(std::min(limit, found->dependency_sets.size()));
  return std::vector<DependencySet>(found->dependency_sets.begin(), found->dependency_sets.begin() + count);
}

Status GuardedStore::put(const ArtifactKey& key, const Artifact& artifact, const RequestContext& context) {
  if (!is_writable()) return make_error(Code::Denied, describe() + " is read-only for this host");
  state_->invalidate_negative_entry(key.digest);
  Event what;
  what.unit = artifact.metadata.unit;
  what.target = artifact.target.name();
  what.key = key.hex();
  what.bytes = artifact.bytes.size();
  send(context,
       std::make_shared<Upload>(
           state_, key.digest, std::move(what),
           [key, artifact](Store& inner, const RequestContext& within) { return inner.put(key, artifact, within); }),
       artifact.bytes.size());
  return {};
}

Status GuardedStore::add_dependency_set(const RequestKey& request, const DependencySet& dependency_set,
                                        const RequestContext& context) {
  if (!is_writable()) return make_error(Code::Denied, describe() + " is read-only for this host");
  state_->invalidate_negative_entry(hints_digest(request));
  send(context,
       std::make_shared<Upload>(state_, hints_digest(request), Event(),
                                [request, dependency_set](Store& inner, const RequestContext& within) {
                                  return inner.add_dependency_set(request, dependency_set, within);
                                }),
       bytes_of(dependency_set));
  return {};
}

void GuardedStore::send(const RequestContext& context, const std::shared_ptr<Upload>& upload, std::uint64_t bytes) {
  const Params& params = state_->params();
  const ServerTimeBudget* budget = context.server_budget;
  if (budget != nullptr && budget->remaining() <= Time(0)) return upload->drop("the server is overloaded");
  if (!params.guard->is_available()) return upload->drop_unavailable();
  if (!params.background_queue->try_enqueue(bytes, [upload] { upload->run(); }))
    upload->drop("the upload queue is full");
}

bool GuardedStore::is_writable() { return state_->params().inner->is_writable(); }

std::string GuardedStore::describe() const { return state_->params().inner->describe(); }

GuardedStore::Counts GuardedStore::counts() const { return state_->counts(); }

}  // namespace kiln
