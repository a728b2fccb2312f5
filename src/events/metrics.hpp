// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kiln/status.hpp>

#include "base/mutex.hpp"
#include "events/event_sink.hpp"

namespace kiln {

/// A sink that counts events and formats them for Prometheus (`docs/reference/metrics.md`). An event costs a few
/// relaxed additions and, unless it is an extension's, no lock, so a text that is built at the same time can include an
/// event in one count and not in another. Thread-safe.
class Metrics final : public EventSink {
 public:
  void on_event(const Event& event) override;

  /// Returns the counts so far and the status of a session, in text format 0.0.4.
  std::string text(const SessionStatus& status) const;

  /// The number of kinds without `Extension`.
  static constexpr std::size_t kKinds = static_cast<std::size_t>(Event::Kind::Extension);
  /// The maximum number of event types of extensions. Further types count as `other`.
  static constexpr std::size_t kMaxExtensions = 64;
  /// none, the five tiers, any other
  static constexpr std::size_t kOrigins = 7;
  /// The outcomes of a wait for another host and the reasons of rejected remote entries, as events carry them. The last
  /// of each list covers all other values.
  static constexpr std::array<std::string_view, 4> kWaitOutcomes = {"finished", "hedged", "timed_out", "other"};
  static constexpr std::array<std::string_view, 24> kRejectionReasons = {"not_an_action_result",
                                                                         "no_statement",
                                                                         "statement_malformed",
                                                                         "content_missing",
                                                                         "content_mismatch",
                                                                         "entry_malformed",
                                                                         "newer_version",
                                                                         "wrong_namespace",
                                                                         "too_large",
                                                                         "hint_malformed",
                                                                         "hint_unsafe_path",
                                                                         "unsigned",
                                                                         "invalid_namespace",
                                                                         "unknown_key",
                                                                         "revoked_key",
                                                                         "namespace_not_allowed",
                                                                         "bad_signature",
                                                                         "epoch_too_old",
                                                                         "epoch_in_future",
                                                                         "live_namespace_not_trusted",
                                                                         "not_certified",
                                                                         "certificate_expired",
                                                                         "foreign_code",
                                                                         "other"};
  /// The servers of a host; their names are the origins of the events about them.
  static constexpr std::array<std::string_view, 2> kServers = {"lease", "remote"};
  static constexpr std::array<double, 12> kBounds = {0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};

 private:
  using Count = std::atomic<std::uint64_t>;

  /// A histogram of durations. The last bucket counts durations above all bounds.
  struct Histogram {
    void add(double seconds);
    std::array<Count, kBounds.size() + 1> buckets{};
    Count nanoseconds{0};
  };
  /// The counts of one kind.
  struct KindCounts {
    void add(const Event& event);
    std::array<Count, kOrigins> events{};
    Count nanoseconds{0};
  };
  static void append(std::string& text, const char* name, const char* help, const Histogram& histogram);
  /// `label` is empty or `x="y"`.
  static void append_buckets(std::string& text, const char* name, const std::string& label, const Histogram& histogram);
  /// Returns the counts of all kinds by their labels: `kind="hit"`.
  std::vector<std::pair<std::string, const KindCounts*>> labeled_counts() const;
  void append_events(std::string& text) const;
  void append_fleet(std::string& text) const;
  void count_fleet_event(const Event& event);
  KindCounts& extension_counts(const Event& event);

  /// Unknown until an event mentions the server: a server that is not configured is neither up nor down.
  enum class Server : unsigned char { Unknown, Up, Down };
  void mark_server_up(std::string_view server);

  std::array<KindCounts, kKinds> kinds_;
  mutable Mutex mutex_;
  /// By category and name. Entries are never removed, so their addresses are valid without the lock.
  std::map<std::pair<std::string, std::string>, KindCounts> extensions_ KILN_GUARDED_BY(mutex_);
  Count copied_bytes_{0};
  Histogram compiles_;
  Histogram waits_;
  Histogram blocking_compiles_;
  std::array<Histogram, kWaitOutcomes.size()> lease_waits_;
  std::array<Count, kRejectionReasons.size()> failures_{};
  std::array<std::atomic<Server>, kServers.size()> servers_{};
  Count uploaded_bytes_{0};
};

}  // namespace kiln
