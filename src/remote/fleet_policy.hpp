#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace kiln {

/// Every number by which a host of a fleet decides how long, how often and how many. One place: sessions, the command
/// line, tests and the simulation (bench/fleet) take them from here. docs/fleet.md says why each is what it is.
struct FleetPolicy {
  using Time = std::chrono::nanoseconds;

  /// What servers may take of one `get`, in all.
  Time budget = std::chrono::milliseconds(100);
  /// With no more than this part of it left no server is asked: it is for noticing that the rest is over.
  double least_part = 0.05;
  /// How long a server may take when this is left of a budget; zero: it is not asked.
  Time askable(Time left) const {
    const double kept_back = least_part * static_cast<double>(budget.count());
    return std::max(left - Time(static_cast<std::int64_t>(kept_back)), Time(0));
  }

  /// How long a server that failed is left alone before it is probed; doubled after each probe that fails. For as long
  /// as `open_most` after an outage a host compiles what others have (docs/fleet-simulation.md).
  Time open_first = std::chrono::milliseconds(500);
  Time open_most = std::chrono::seconds(10);
  /// Answers in a row that had to be rejected, after which a server is left alone too.
  unsigned rejections_in_a_row = 16;

  /// How long what a server did not have is taken to be absent, and for how many keys that is remembered.
  Time absent_for = std::chrono::seconds(5);
  std::size_t most_absent = 10'000;

  /// What waits to be uploaded; more is dropped and counted.
  std::size_t most_uploads = 1024;
  std::uint64_t most_upload_bytes = std::uint64_t{64} << 20;
  Time upload_limit = std::chrono::seconds(30);
  /// How long the end of a session waits for its uploads.
  Time drain_limit = std::chrono::seconds(2);

  /// A claim lapses after this unless its holder renews it, which he does three times as often.
  Time lease = std::chrono::seconds(5);
  /// A waiter looks whether the holder is done, first after `poll_first`, then after a quarter of what he has waited
  /// already, at least `poll_first` again and at most `poll_most`. Looking sooner than this gains nothing where
  /// compiles take half a second and more, and doubles what the table is asked (docs/fleet-simulation.md).
  Time poll_first = std::chrono::milliseconds(200);
  Time poll_most = std::chrono::seconds(2);
  /// Those who see a lease lapse look within this time of each other: a holder that died is succeeded within a second
  /// of its lease, and not by all at once.
  Time lapse_spread = std::chrono::milliseconds(800);
  /// A waiter who has waited this part of what he may tries to draw a hedge: the right to compile besides the holder.
  double hedge_at = 0.8;
  /// How many hedges there are per request in the time that a waiter may wait, in the whole fleet.
  unsigned hedges = 1;
  /// Every wait is drawn from this part of itself around itself, so that hosts that began together do not stay
  /// together.
  double jitter = 0.25;
};

}  // namespace kiln
