#pragma once

#include <chrono>
#include <optional>
#include <utility>

namespace kiln {

/// The time of the request that this thread is serving (steady clock). A file check newer than this time is still valid
/// and is not repeated. Without an `RequestTime` object only a new check counts. The scope is thread-local and ends
/// with the object; the innermost object applies.
class RequestTime {
 public:
  explicit RequestTime(std::chrono::nanoseconds time) : outer_(std::exchange(now_, time)) {}
  ~RequestTime() { now_ = outer_; }
  RequestTime(const RequestTime&) = delete;
  RequestTime& operator=(const RequestTime&) = delete;

  static std::optional<std::chrono::nanoseconds> current() { return now_; }

 private:
  static inline thread_local std::optional<std::chrono::nanoseconds> now_;
  const std::optional<std::chrono::nanoseconds> outer_;
};

}  // namespace kiln
