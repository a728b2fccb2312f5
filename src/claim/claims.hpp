#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>

#include <kiln/key.hpp>

namespace kiln {

/// The right to compile a request, held until it is destroyed. It saves work and never carries correctness: a claim
/// that is lost costs a duplicate compile. May be released on another thread than the one that acquired it.
class Claim {
 public:
  virtual ~Claim() = default;
};

/// Sees to it that one party at a time compiles a request, among all that share these claims.
/// Every implementation passes tests/conformance/claims_conformance.hpp. Any thread may call any function.
class Claims {
 public:
  enum class Outcome {
    Mine,         ///< `claim` is set: compile, publish, then let it go
    Finished,     ///< another held it and let it go while we waited: look in the store again, then ask again
    TimedOut,     ///< another still holds it: compile for oneself
    Unavailable,  ///< claims do not work here (the reason says why): compile without one
  };
  struct Answer {
    Outcome outcome = Outcome::Unavailable;
    std::unique_ptr<Claim> claim;
    std::string reason;
  };

  virtual ~Claims() = default;
  /// Waits at most this long for another holder; zero never waits. A wait that is not wanted any more (`stop`) ends
  /// within half a second as if its time were up.
  virtual Answer acquire(const RequestKey& request, std::chrono::milliseconds wait,
                         const std::stop_token& stop = {}) = 0;
};

}  // namespace kiln
