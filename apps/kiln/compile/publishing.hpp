// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <kiln/event.hpp>

#include "apps/kiln/compile/warm_report.hpp"
#include "base/mutex.hpp"
#include "session/config/config.hpp"

namespace kiln::cli {

/// Counts the uploads of a command, keeps the reasons why a configured bundle or server is not effective, and forwards
/// all events. Thread-safe.
class PublishingObserver {
 public:
  explicit PublishingObserver(EventCallback next) : next_(std::move(next)) {}
  void on_event(const Event& event);

  std::uint64_t sent() const { return sent_; }
  std::uint64_t dropped() const { return dropped_; }
  /// Returns why uploads failed: the failure of the server, else the first reason; empty if none failed.
  std::string upload_failure() const;
  /// Returns the reasons why something that is configured is not used, each once.
  std::vector<std::string> problems() const;

 private:
  const EventCallback next_;
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> dropped_{0};
  mutable Mutex mutex_;
  std::vector<std::string> problems_ KILN_GUARDED_BY(mutex_);
  std::string server_failure_ KILN_GUARDED_BY(mutex_);
  std::string first_drop_ KILN_GUARDED_BY(mutex_);
};

/// Returns why units of the report are not in the configured remote store, and the command that changes it; empty if
/// they are, or if none is configured. Can ask the store. `failure` is the reason for failed uploads.
std::string publishing_problem(const Config& config, const WarmReport& report, const std::string& failure);

}  // namespace kiln::cli
