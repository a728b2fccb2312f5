// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "bench/fleet/event_queue.hpp"

namespace kiln::fleet {

/// The contents of the servers: for each key its lease and its existing objects.
class ServerState {
 public:
  explicit ServerState(std::uint32_t keys) : rows_(keys) {}

  bool take(std::uint32_t key, std::uint32_t token, Time lease, Time now) {
    Row& row = rows_[key];
    if (row.owner != 0 && now < row.until) return false;
    row.lapsed = row.owner != 0;
    row.owner = token;
    row.until = now + lease;
    return true;
  }
  /// Returns whether the current lease of a key was taken over after it had expired.
  bool was_taken_over(std::uint32_t key) const { return rows_[key].lapsed; }
  bool renew(std::uint32_t key, std::uint32_t token, Time lease, Time now) {
    Row& row = rows_[key];
    if (row.owner != token || now >= row.until) return false;
    row.until = now + lease;
    return true;
  }
  void release(std::uint32_t key, std::uint32_t token) {
    if (rows_[key].owner == token) rows_[key].owner = 0;
  }
  /// Returns the remaining time of the lease; 0 if it is free.
  Time remaining(std::uint32_t key, Time now) const {
    const Row& row = rows_[key];
    return row.owner != 0 && now < row.until ? row.until - now : Time(0);
  }
  bool draw(std::uint32_t key, unsigned count, Time window, Time now) {
    Row& row = rows_[key];
    if (now >= row.hedges_until) {
      row.hedges = 0;
      row.hedges_until = now + window;
    }
    return row.hedges++ < count;
  }

  bool hinted(std::uint32_t key) const { return rows_[key].hint; }
  bool has(std::uint32_t key) const { return rows_[key].entry; }
  void put_entry(std::uint32_t key) { rows_[key].entry = true; }
  void put_hint(std::uint32_t key) { rows_[key].hint = true; }

 private:
  struct Row {
    std::uint32_t owner = 0;
    unsigned hedges = 0;
    Time until{};
    Time hedges_until{};
    bool lapsed = false;
    bool hint = false;
    bool entry = false;
  };
  std::vector<Row> rows_;
};

}  // namespace kiln::fleet
