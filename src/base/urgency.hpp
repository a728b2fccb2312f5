// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>

namespace kiln {

/// A flag of a task that is set when a caller waits for the task. It can be raised while the task runs and stays
/// raised. Copies share the flag. Thread-safe.
class Urgency {
 public:
  Urgency() = default;  ///< never raised
  explicit Urgency(bool raised) : source_(std::stop_source()) {
    if (raised) raise();
  }

  /// No effect on a default-constructed flag.
  void raise() { source_.request_stop(); }
  bool is_raised() const { return source_.stop_requested(); }
  /// Returns false for a default-constructed flag.
  bool can_be_raised() const { return source_.stop_possible(); }
  /// Returns a token whose stop is requested when the flag is raised.
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_{std::nostopstate};
};

}  // namespace kiln
