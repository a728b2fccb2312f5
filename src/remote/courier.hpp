#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "base/clock.hpp"
#include "base/per_process.hpp"
#include "remote/fleet_policy.hpp"

namespace kiln {

/// Does for a session what nobody waits for, on one thread of its own, which starts with the first errand: uploads, the
/// release of leases after them, probes of servers that failed. Errands go in the order in which they were sent, and
/// must not throw. Any thread may call any function. In a child of fork it has no errands and starts anew.
class Courier {
 public:
  explicit Courier(const FleetPolicy& policy = {}, const Clock& clock = system_clock());
  /// As `stop`.
  ~Courier();
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;

  /// False: the queue is full of errands or of bytes, and this one is dropped.
  bool send(std::uint64_t bytes, std::function<void()> errand);
  /// Never dropped, costs no bytes: for the release of what others wait for. Behind all that was sent before.
  void send_always(std::function<void()> errand);
  /// An errand for a later moment of the clock's steady time. Then it goes before those that wait: uploads to one
  /// server must not put off the news that another is back.
  void send_at(std::chrono::nanoseconds when, std::function<void()> errand);

  /// Waits until all that was sent is done, at most this long; false: something is left. Later ones are not waited for.
  bool drain(std::chrono::nanoseconds limit);
  /// Waits for what was sent as long as the policy's `drain_limit`, forgets the rest, and ends the thread. Whatever is
  /// under way then is asked to end (`ending`) and waited for. What is sent later is forgotten. Not for errands to
  /// call.
  void stop();
  /// Whether an errand that is under way should end now.
  bool ending() const;

 private:
  class State;
  struct Hold;
  State& state() const;

  const FleetPolicy policy_;
  const Clock& clock_;
  mutable PerProcess<Hold> hold_;
};

}  // namespace kiln
