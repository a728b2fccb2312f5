#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

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
  void append_events(std::string& text) const;

  std::array<std::array<Count, kOrigins>, kKinds> events_{};
  std::array<Count, kKinds> nanoseconds_{};
  Count copied_bytes_{0};
  Histogram compiles_;
  Histogram waits_;
  Histogram hot_compiles_;
};

}  // namespace kiln
