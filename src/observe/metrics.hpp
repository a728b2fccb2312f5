#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <kiln/status.hpp>

#include "observe/sink.hpp"

namespace kiln {

/// Counts events, and says so as Prometheus reads it (`docs/metrics.md`). Any thread; an event costs a few relaxed
/// additions and no lock, so a text that is made meanwhile may have an event in one count and not yet in another.
class Metrics final : public EventSink {
 public:
  void tell(const Event& event) override;

  /// The counts so far and the status of a session, in the text format 0.0.4.
  std::string text(const SessionStatus& status) const;

  static constexpr std::size_t kKinds = static_cast<std::size_t>(Event::Kind::MemoryTrimmed) + 1;
  /// None, the five tiers, any other.
  static constexpr std::size_t kOrigins = 7;
  /// How a wait for another host ended, and why a remote answer was refused: the words that events carry. The last of
  /// each stands for any other.
  static constexpr std::array<std::string_view, 4> kWaitEnds = {"finished", "hedged", "timed_out", "other"};
  static constexpr std::array<std::string_view, 21> kRefusals = {"not_an_action_result",
                                                                 "no_statement",
                                                                 "statement_malformed",
                                                                 "content_missing",
                                                                 "content_differs",
                                                                 "entry_malformed",
                                                                 "too_large",
                                                                 "hint_malformed",
                                                                 "hint_hostile",
                                                                 "unsigned",
                                                                 "not_a_namespace",
                                                                 "unknown_key",
                                                                 "revoked_key",
                                                                 "other_namespace",
                                                                 "bad_signature",
                                                                 "old_epoch",
                                                                 "future_epoch",
                                                                 "live_not_named",
                                                                 "not_certified",
                                                                 "certificate_expired",
                                                                 "other"};
  /// Whom a host asks, which is the origin of the events that tell of it.
  static constexpr std::array<std::string_view, 2> kServers = {"lease", "remote"};
  static constexpr std::array<double, 12> kBounds = {0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};

 private:
  using Count = std::atomic<std::uint64_t>;

  /// How often something took how long. The last bucket is of what took longer than all bounds.
  struct Histogram {
    void add(double seconds);
    std::array<Count, kBounds.size() + 1> buckets{};
    Count nanoseconds{0};
  };
  static void append(std::string& text, const char* name, const char* help, const Histogram& histogram);
  /// `label` is empty or `x="y"`.
  static void append_buckets(std::string& text, const char* name, const std::string& label, const Histogram& histogram);
  void append_events(std::string& text) const;
  void append_fleet(std::string& text) const;
  void tell_of_fleet(const Event& event);

  /// Unknown until something was heard of it: a server that is not configured is neither up nor down.
  enum class Server : unsigned char { Unknown, Up, Down };
  void answered(std::string_view server);

  std::array<std::array<Count, kOrigins>, kKinds> events_{};
  std::array<Count, kKinds> nanoseconds_{};
  Count copied_bytes_{0};
  Histogram compiles_;
  Histogram waits_;
  Histogram hot_compiles_;
  std::array<Histogram, kWaitEnds.size()> lease_waits_;
  std::array<Count, kRefusals.size()> refusals_{};
  std::array<std::atomic<Server>, kServers.size()> servers_{};
  Count uploaded_bytes_{0};
};

}  // namespace kiln
