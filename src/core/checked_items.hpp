#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "core/closure.hpp"

namespace kiln {

/// Which items of closures were found to be as they say, and when: units that are asked for together share most of
/// their headers, and each is looked at once for all of them. Any thread; several that check at once share the work.
class CheckedItems {
 public:
  /// For how long a look at a file counts at most.
  static constexpr std::chrono::seconds kHolds{1};

  explicit CheckedItems(const Clock& clock = system_clock()) : clock_(clock) {}

  /// As `check` of a closure, except that an item which was found right since `AskedAt::time()` is not looked at again.
  std::optional<Mismatch> check(const Closure& closure, const Places& places, FileDigests& digests);

 private:
  /// What was asked of the file system: an item, where its root lies, and whether its time counts.
  struct Question {
    std::uint32_t places;
    const Closure::Item* item;
  };
  struct Known {
    Closure::Item item;
    std::uint32_t places;
    std::chrono::nanoseconds at;  ///< before it was looked at; of one that never was found right: zero
    bool taken;                   ///< somebody looks at it just now
  };
  using Numbers = std::vector<std::uint32_t>;

  std::uint32_t number_of(const Places& places, bool timed) KILN_REQUIRES(mutex_);
  Known& known(const Question& question) KILN_REQUIRES(mutex_);
  /// From item `next` on: some that nobody looks at, which are this thread's from here on, and those that others do.
  Numbers take(const Closure& closure, std::uint32_t places, std::size_t& next, Numbers& taken_by_others);
  void give_back(const Closure& closure, std::uint32_t places, const Numbers& items,
                 std::optional<std::chrono::nanoseconds> found_right);
  bool holds(const Known& known, std::chrono::nanoseconds now) const;

  const Clock& clock_;
  Mutex mutex_;
  std::map<std::string, std::uint32_t> places_ KILN_GUARDED_BY(mutex_);
  std::uint32_t numbers_ KILN_GUARDED_BY(mutex_) = 0;  ///< never given twice
  std::unordered_multimap<std::uint64_t, Known> items_ KILN_GUARDED_BY(mutex_);
  std::chrono::nanoseconds newest_ KILN_GUARDED_BY(mutex_){0};
};

}  // namespace kiln
