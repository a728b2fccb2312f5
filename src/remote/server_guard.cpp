#include "remote/server_guard.hpp"

#include <new>

#include "base/guarded.hpp"
#include "store/allowance.hpp"

namespace kiln {

std::shared_ptr<ServerGuard> ServerGuard::make(Parts parts) {
  return std::shared_ptr<ServerGuard>(new ServerGuard(std::move(parts)));
}

ServerGuard::ServerGuard(Parts parts) : parts_(std::move(parts)), breaker_(parts_.policy, Jitter::of_this_process()) {}

bool ServerGuard::closed() const {
  const MutexLock lock(mutex_);
  return breaker_.closed();
}

ServerGuard::Time ServerGuard::allowed() {
  if (!closed()) {
    if (unarranged_.exchange(false)) arrange_probe();
    return Time(0);
  }
  const Allowance* allowance = Allowance::current();
  return parts_.policy.askable(allowance == nullptr ? parts_.policy.budget : allowance->left());
}

void ServerGuard::silent(const Error& error) {
  {
    const MutexLock lock(mutex_);
    if (!breaker_.failed(parts_.clock->steady())) return;
  }
  give_up(error.message);
}

void ServerGuard::refuted() {
  {
    const MutexLock lock(mutex_);
    if (!breaker_.rejected(parts_.clock->steady())) return;
  }
  give_up(std::to_string(parts_.policy.rejections_in_a_row) + " answers in a row had to be rejected");
}

void ServerGuard::give_up(const std::string& why) {
  attempt([&] { parts_.observer.tell(Event::Kind::RemoteUnavailable, parts_.origin, parts_.name + ": " + why); });
  arrange_probe();
}

void ServerGuard::arrange_probe() {
  Time at{};
  {
    const MutexLock lock(mutex_);
    at = breaker_.probe_at();
  }
  try {
    parts_.courier->send_at(at, [weak = weak_from_this()] {
      if (const auto guard = weak.lock()) guard->probe();
    });
  } catch (const std::bad_alloc&) {
    unarranged_ = true;  // whoever asks next sees to it
  }
}

void ServerGuard::probe() {
  {
    const MutexLock lock(mutex_);
    if (!breaker_.begin_probe(parts_.clock->steady())) return;
  }
  // Within the time that it would have to answer in: one that needs longer would be given up by the next lookup.
  const Status answer = guarded([&] { return parts_.probe(parts_.policy.budget); });
  bool back = false;
  {
    const MutexLock lock(mutex_);
    back = breaker_.probed(answer.ok(), parts_.clock->steady());
  }
  if (back) {
    attempt([&] { parts_.observer.tell(Event::Kind::RemoteBack, parts_.origin, parts_.name + " answers again"); });
  } else {
    arrange_probe();
  }
}

ServerGuard::Question::Question(ServerGuard& guard) : guard_(guard), start_(guard.parts_.clock->steady()) {}

ServerGuard::Question::~Question() {
  if (!told_) {
    const MutexLock lock(guard_.mutex_);
    guard_.breaker_.succeeded();
  }
  Allowance::spend(guard_.parts_.clock->steady() - start_);
}

void ServerGuard::Question::failed(const Error& error) {
  told_ = true;
  switch (error.code) {
    case Code::TimedOut:
    case Code::Unavailable:
    case Code::Io:
    case Code::Refused: guard_.silent(error); break;
    case Code::Corrupt: guard_.refuted(); break;
    default: break;
  }
}

void ServerGuard::Question::rejected() {
  told_ = true;
  guard_.refuted();
}

}  // namespace kiln
