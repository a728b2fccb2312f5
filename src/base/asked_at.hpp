#pragma once

#include <chrono>
#include <optional>
#include <utility>

namespace kiln {

/// When that was asked for which this thread works on, by the steady clock: what anybody saw of a file since then is an
/// answer to it, and need not be looked at again. Where nobody says, only what is seen now counts. Of this thread, for
/// as long as it lives; the innermost counts.
class AskedAt {
 public:
  explicit AskedAt(std::chrono::nanoseconds time) : outer_(std::exchange(now_, time)) {}
  ~AskedAt() { now_ = outer_; }
  AskedAt(const AskedAt&) = delete;
  AskedAt& operator=(const AskedAt&) = delete;

  static std::optional<std::chrono::nanoseconds> time() { return now_; }

 private:
  static inline thread_local std::optional<std::chrono::nanoseconds> now_;
  const std::optional<std::chrono::nanoseconds> outer_;
};

}  // namespace kiln
