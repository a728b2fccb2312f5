// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace kiln::test {

/// One operation on an engine. `which` is the request that it applies to, if any.
struct Step {
  enum class Kind {
    Request,
    RequestWaited,
    Get,         // without a timeout
    GetLimited,  // with a timeout of 5 ms
    GetNow,      // without waiting
    Cancel,
    Retry,
    Forget,
    Change,   // the inputs of the unit change, or change back
    Time,     // 3 ms pass
    Succeed,  // the running compile, if any, ends
    Fail,
    Stop,
  };
  Kind kind = Kind::Request;
  std::size_t which = 0;
};

/// The specified behavior of an engine with one thread per priority, independent of the implementation. Compiles end
/// and time passes only by a step. Not thread-safe.
class EngineModel {
 public:
  static constexpr std::size_t kOrders = 5;
  enum class State { Nothing, Queued, Running, Ready, Failed };

  void apply(Step step) {
    const std::size_t which = step.which;
    switch (step.kind) {
      case Step::Kind::Request: request(which, 0); break;
      case Step::Kind::RequestWaited: request(which, 1); break;
      case Step::Kind::Get: get(which, std::chrono::hours(1)); break;
      case Step::Kind::GetLimited: get(which, std::chrono::milliseconds(5)); break;
      case Step::Kind::GetNow: get(which, std::chrono::milliseconds(0)); break;
      case Step::Kind::Cancel: cancel(which); break;
      case Step::Kind::Retry:
        if (state_[which] == State::Failed) state_[which] = State::Nothing;
        break;
      case Step::Kind::Forget:
        if (state_[which] == State::Ready) state_[which] = State::Nothing;
        break;
      case Step::Kind::Change: changed_[which] = !changed_[which]; break;
      case Step::Kind::Time: pass(std::chrono::milliseconds(3)); break;
      case Step::Kind::Succeed: land(which, State::Ready, "ok"); break;
      case Step::Kind::Fail: land(which, State::Failed, "compile_failed"); break;
      case Step::Kind::Stop: stop(); break;
    }
    begin_next();
  }

  State state(std::size_t which) const { return state_[which]; }
  bool changed(std::size_t which) const { return changed_[which]; }
  int compiles(std::size_t which) const { return compiles_[which]; }
  std::set<std::size_t> running() const {
    std::set<std::size_t> found;
    for (std::size_t which = 0; which < kOrders; ++which) {
      if (state_[which] == State::Running) found.insert(which);
    }
    return found;
  }
  /// Returns the outcome of every get so far; empty while it waits.
  const std::vector<std::string>& outcomes() const { return outcomes_; }
  int waiting() const { return static_cast<int>(waiters_.size()); }

 private:
  struct Waiter {
    std::size_t get;
    std::size_t which;
    std::chrono::milliseconds end;
  };

  void request(std::size_t which, std::size_t priority) {
    if (stopped_) return;
    if (state_[which] == State::Nothing) {
      state_[which] = State::Queued;
      queue_[priority].push_back(which);
    } else if (state_[which] == State::Queued && priority == 1 && std::erase(queue_[0], which) > 0) {
      queue_[1].push_back(which);
    }
  }

  void get(std::size_t which, std::chrono::milliseconds timeout) {
    outcomes_.emplace_back();
    if (state_[which] == State::Ready) {
      outcomes_.back() = "ok";
    } else if (stopped_) {
      outcomes_.back() = "cancelled";
    } else if (state_[which] == State::Failed && !changed_[which]) {
      outcomes_.back() = "compile_failed";
    } else {
      if (state_[which] == State::Failed) state_[which] = State::Nothing;
      const bool waits = timeout > std::chrono::milliseconds(0);
      request(which, waits ? 1 : 0);
      if (waits) waiters_.push_back({outcomes_.size() - 1, which, now_ + timeout});
      if (!waits) outcomes_.back() = "timed_out";
    }
  }

  void cancel(std::size_t which) {
    if (state_[which] == State::Queued) withdraw(which);
    if (state_[which] == State::Running) ending_[which] = true;
    answer(which, "cancelled");
  }

  void withdraw(std::size_t which) {
    std::erase(queue_[0], which);
    std::erase(queue_[1], which);
    state_[which] = State::Nothing;
  }

  void pass(std::chrono::milliseconds time) {
    now_ += time;
    for (const Waiter& waiter : waiters_) {
      if (waiter.end <= now_) outcomes_[waiter.get] = "timed_out";
    }
    std::erase_if(waiters_, [this](const Waiter& waiter) { return waiter.end <= now_; });
  }

  void land(std::size_t which, State state, const std::string& outcome) {
    if (state_[which] != State::Running) return;
    state_[which] = state;
    for (auto& thread : thread_) {
      if (thread == static_cast<int>(which)) thread = -1;
    }
    answer(which, outcome);
  }

  void answer(std::size_t which, const std::string& outcome) {
    for (const Waiter& waiter : waiters_) {
      if (waiter.which == which) outcomes_[waiter.get] = outcome;
    }
    std::erase_if(waiters_, [which](const Waiter& waiter) { return waiter.which == which; });
  }

  void stop() {
    stopped_ = true;
    for (std::size_t which = 0; which < kOrders; ++which) {
      if (state_[which] == State::Queued) withdraw(which);
      answer(which, "cancelled");
      land(which, State::Nothing, "");  // canceled
    }
  }

  void begin_next() {
    for (std::size_t priority = 0; priority < 2; ++priority) {
      if (thread_[priority] >= 0 || queue_[priority].empty()) continue;
      const std::size_t which = queue_[priority].front();
      queue_[priority].pop_front();
      thread_[priority] = static_cast<int>(which);
      state_[which] = State::Running;
      ending_[which] = false;
      ++compiles_[which];
    }
  }

  std::array<State, kOrders> state_{};
  std::array<bool, kOrders> changed_{};
  std::array<bool, kOrders> ending_{};  // canceled while running
  std::array<int, kOrders> compiles_{};
  std::array<std::deque<std::size_t>, 2> queue_;
  std::array<int, 2> thread_{-1, -1};  // the request that each thread runs
  std::vector<Waiter> waiters_;
  std::vector<std::string> outcomes_;
  std::chrono::milliseconds now_{0};
  bool stopped_ = false;
};

}  // namespace kiln::test
