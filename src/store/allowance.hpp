#pragma once

#include <chrono>
#include <functional>

namespace kiln {

/// How much time servers may take of what this thread is doing, in all: one budget for every lookup, claim and second
/// look of a `get`. Stores on this host do not ask it. It is in force from when it is made to when it is destroyed, and
/// the outer one again after that. Waiting for somebody who compiles is not a server's time and is not counted here.
class Allowance {
 public:
  /// Zero: no server is asked. `over`, of work that may come to be of no use while it is under way, says when it is;
  /// it is called on this thread only.
  explicit Allowance(std::chrono::nanoseconds time, std::function<bool()> over = {});
  ~Allowance();
  Allowance(const Allowance&) = delete;
  Allowance& operator=(const Allowance&) = delete;

  /// The one in force on this thread; null where nobody has set one.
  static Allowance* current();
  /// What is left of the one in force, and no more than `most`; `most` where none is.
  static std::chrono::nanoseconds at_most(std::chrono::nanoseconds most);
  /// Whether nobody wants to know any more what this thread asks a server, whatever time is left. For those who wait
  /// for an answer: to be looked at several times a second. Then they fail with Code::Cancelled.
  static bool over();
  /// Whether somebody may come to say that: whoever naps then does so in short pieces.
  static bool may_be_over();
  /// A server took this long. Nothing where none is in force.
  static void spend(std::chrono::nanoseconds time);

  /// From here on a store is asked even for what it said not to have a moment ago: somebody may have published it.
  void ask_afresh() { fresh_ = true; }
  bool fresh() const { return fresh_; }
  std::chrono::nanoseconds left() const { return left_; }

 private:
  std::chrono::nanoseconds left_;
  std::function<bool()> over_;
  bool fresh_ = false;
  Allowance* outer_;
};

}  // namespace kiln
