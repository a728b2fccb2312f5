#pragma once

#include <cstdint>
#include <vector>

#include "bench/fleet/event_queue.hpp"

namespace kiln::fleet {

/// What the servers have: for each key its lease, and which of its bodies are there.
class Shelf {
 public:
  explicit Shelf(std::uint32_t keys) : rows_(keys) {}

  bool take(std::uint32_t key, std::uint32_t token, Time lease, Time now) {
    Row& row = rows_[key];
    if (row.owner != 0 && now < row.until) return false;
    row.lapsed = row.owner != 0;
    row.owner = token;
    row.until = now + lease;
    return true;
  }
  /// Whether the lease of a key was last taken from one who had let it lapse.
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
  /// Of the lease; zero: nobody has it.
  Time left(std::uint32_t key, Time now) const {
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
