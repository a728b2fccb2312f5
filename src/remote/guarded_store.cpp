#include "remote/guarded_store.hpp"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "base/guarded.hpp"
#include "base/mutex.hpp"
#include "remote/judgement.hpp"
#include "remote/negative_cache.hpp"
#include "store/allowance.hpp"

namespace kiln {
namespace {

using Time = std::chrono::nanoseconds;

std::uint64_t bytes_of(const Closure& closure) {
  std::uint64_t bytes = sizeof closure;
  for (const Closure::Item& item : closure.items) bytes += sizeof item + item.name.size();
  return bytes;
}

}  // namespace

// What the server has under a name: an artifact, or closures. Written by whoever asks, and read by others when it is
// `done`, which the lock of the store guards.
struct GuardedStore::Lookup {
  bool done = false;
  std::optional<Hit> hit = {};
  std::vector<Closure> closures = {};
};

class GuardedStore::State {
 public:
  explicit State(Parts parts) : parts_(std::move(parts)), absent_(parts_.policy, Jitter::of_this_process()) {}

  using Ask = std::function<Status(Store&, Lookup&)>;

  // Null: nothing is known of it.
  std::shared_ptr<const Lookup> look_up(const Digest& name, const Ask& ask) {
    const Allowance* allowance = Allowance::current();
    const bool fresh = allowance != nullptr && allowance->fresh();
    const Time allowed = parts_.guard->allowed();
    const auto lookup = std::make_shared<Lookup>();
    {
      const MutexLock lock(mutex_);
      if (allowed <= Time(0)) {
        ++counts_.refused;
        return nullptr;
      }
      // Who asks afresh must not take an answer from before, nor that of a question from before.
      if (!fresh && absent_.absent(name, parts_.clock->steady())) {
        ++counts_.spared;
        return nullptr;
      }
      if (const auto same = under_way_.find(name); !fresh && same != under_way_.end()) {
        ++counts_.spared;
        return wait_for(same->second, allowed);
      }
      ++counts_.asked;
      under_way_.insert_or_assign(name, lookup);
    }
    const Ended ended{*this, name, lookup};
    const bool answered = ask_server(*lookup, ask, allowed);
    if (answered && !lookup->hit && lookup->closures.empty()) {
      const MutexLock lock(mutex_);
      absent_.remember(name, parts_.clock->steady());
    }
    return lookup;
  }

  // This host has just made it, or sent it.
  void forget_absence(const Digest& name) {
    const MutexLock lock(mutex_);
    absent_.forget(name);
  }
  void count_upload(bool sent) {
    const MutexLock lock(mutex_);
    ++(sent ? counts_.uploaded : counts_.dropped);
  }
  Counts counts() const {
    const MutexLock lock(mutex_);
    return counts_;
  }
  const Parts& parts() const { return parts_; }

 private:
  // However a question ends, by an exception for want of memory too, nobody waits for its answer any more.
  struct Ended {
    State& state;
    const Digest& name;
    const std::shared_ptr<Lookup>& lookup;
    ~Ended() {
      const MutexLock lock(state.mutex_);
      lookup->done = true;
      const auto own = state.under_way_.find(name);
      if (own != state.under_way_.end() && own->second == lookup) state.under_way_.erase(own);
      state.answered_.notify_all();
    }
  };

  // Whether it said anything; that it has what must be rejected is an answer.
  bool ask_server(Lookup& lookup, const Ask& ask, Time allowed) {
    ServerGuard::Question question(*parts_.guard);
    const Allowance allowance(allowed);  // where the thread had none
    const Status asked = ask(*parts_.inner, lookup);
    if (!asked) question.failed(asked.error());
    return asked.ok() || asked.error().code == Code::Corrupt;
  }

  std::shared_ptr<const Lookup> wait_for(std::shared_ptr<const Lookup> lookup, Time allowed) KILN_REQUIRES(mutex_) {
    const Time start = parts_.clock->steady();
    const Deadline deadline(*parts_.clock, allowed);
    while (!lookup->done && deadline.left() > Time(0)) parts_.clock->wait(answered_, mutex_, deadline.left());
    Allowance::spend(parts_.clock->steady() - start);
    if (!lookup->done) return nullptr;
    return lookup;
  }

  const Parts parts_;
  mutable Mutex mutex_;
  Condition answered_;
  NegativeCache absent_ KILN_GUARDED_BY(mutex_);
  std::unordered_map<Digest, std::shared_ptr<Lookup>> under_way_ KILN_GUARDED_BY(mutex_);
  Counts counts_ KILN_GUARDED_BY(mutex_);
};

// Something that is to be sent. One that is forgotten before it could be sent is dropped like any other.
class GuardedStore::Upload {
 public:
  using Send = std::function<Status(Store&)>;

  // `what` has everything about it that events tell.
  Upload(std::shared_ptr<State> state, Digest name, Event what, Send send)
      : state_(std::move(state)), name_(name), what_(std::move(what)), send_(std::move(send)) {}
  ~Upload() {
    if (!over_) attempt([&] { drop("the session ended before it was sent"); });
  }
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  // On the courier's thread.
  void run() {
    const Parts& parts = state_->parts();
    if (!parts.guard->closed()) return drop_for_want_of_a_server();
    const Time start = parts.clock->steady();
    const Status sent = [&] {
      const Allowance allowance(parts.policy.upload_limit,
                                [&] { return parts.courier->ending() || !parts.guard->closed(); });
      ServerGuard::Question question(*parts.guard);
      Status answer = send_(*parts.inner);
      // A server from which we may only read is as good for that as any.
      if (!answer && answer.error().code != Code::Refused) question.failed(answer.error());
      return answer;
    }();
    if (!sent) return drop(sent.error().message);
    over_ = true;
    state_->count_upload(true);
    state_->forget_absence(name_);
    if (what_.key.empty()) return;  // closures go without saying
    what_.ms = milliseconds_since(*parts.clock, start);
    tell(Event::Kind::Uploaded, "");
  }

  void drop(const std::string& why) {
    over_ = true;
    state_->count_upload(false);
    tell(Event::Kind::UploadDropped, why);
  }
  void drop_for_want_of_a_server() { drop("the server is not asked until it answers again"); }

 private:
  void tell(Event::Kind kind, const std::string& why) {
    if (!state_->parts().observer) return;
    what_.kind = kind;
    what_.origin = state_->parts().inner->describe();
    what_.message = why;
    state_->parts().observer.tell(what_);
  }

  const std::shared_ptr<State> state_;
  const Digest name_;
  Event what_;
  const Send send_;
  bool over_ = false;
};

GuardedStore::GuardedStore(Parts parts) : state_(std::make_shared<State>(std::move(parts))) {}

Result<std::optional<Hit>> GuardedStore::get(const Key& key) {
  const auto found = state_->look_up(key.digest, [&](Store& inner, Lookup& lookup) -> Status {
    auto hit = inner.get(key);
    if (!hit) return std::move(hit).error();
    lookup.hit = std::move(*hit);
    return {};
  });
  return found == nullptr ? std::optional<Hit>() : found->hit;
}

Result<std::vector<Closure>> GuardedStore::closures(const RequestKey& request, std::size_t limit) {
  // All of them, which are one body: whoever waits for this answer may want more than whoever asks.
  const auto found = state_->look_up(closures_place(request), [&](Store& inner, Lookup& lookup) -> Status {
    auto closures = inner.closures(request, kMostClosures);
    if (!closures) return std::move(closures).error();
    lookup.closures = std::move(*closures);
    return {};
  });
  if (found == nullptr) return std::vector<Closure>();
  const auto count = static_cast<std::ptrdiff_t>(std::min(limit, found->closures.size()));
  return std::vector<Closure>(found->closures.begin(), found->closures.begin() + count);
}

Status GuardedStore::put(const Key& key, const Artifact& artifact) {
  if (!writable()) return failure(Code::Refused, describe() + " is not written to from here");
  state_->forget_absence(key.digest);
  Event what;
  what.unit = artifact.about.unit;
  what.target = artifact.target.name();
  what.key = key.hex();
  what.bytes = artifact.bytes.size();
  send(std::make_shared<Upload>(state_, key.digest, std::move(what),
                                [key, artifact](Store& inner) { return inner.put(key, artifact); }),
       artifact.bytes.size());
  return {};
}

Status GuardedStore::add_closure(const RequestKey& request, const Closure& closure) {
  if (!writable()) return failure(Code::Refused, describe() + " is not written to from here");
  state_->forget_absence(closures_place(request));
  send(std::make_shared<Upload>(state_, closures_place(request), Event(),
                                [request, closure](Store& inner) { return inner.add_closure(request, closure); }),
       bytes_of(closure));
  return {};
}

void GuardedStore::send(const std::shared_ptr<Upload>& upload, std::uint64_t bytes) {
  const Parts& parts = state_->parts();
  if (!parts.guard->closed()) return upload->drop_for_want_of_a_server();
  if (!parts.courier->send(bytes, [upload] { upload->run(); })) upload->drop("too much is waiting to be sent already");
}

bool GuardedStore::writable() { return state_->parts().inner->writable(); }

std::string GuardedStore::describe() const { return state_->parts().inner->describe(); }

GuardedStore::Counts GuardedStore::counts() const { return state_->counts(); }

}  // namespace kiln
