#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "base/mutex.hpp"

namespace kiln {

/// Renews the leases that this process holds, from one thread for all of them, which starts with the first and ends
/// with the last. Any thread.
class LeaseKeeper {
 public:
  using Time = std::chrono::nanoseconds;
  enum class Answer : unsigned char {
    Renewed,
    Lost,     ///< another has it, or nobody
    Unknown,  ///< the table could not be asked
  };
  struct Kept {
    Time lease{};
    Time most{};   ///< it is not renewed for longer than this
    Time since{};  ///< when it was asked for
    std::function<Answer()> renew;
    std::function<void(const std::string& why)> lost;  ///< told once, from the keeper's thread
  };

  explicit LeaseKeeper(const Clock& clock) : clock_(clock) {}
  ~LeaseKeeper();
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

  /// The number by which it is forgotten.
  std::uint64_t keep(const Kept& kept);
  /// No renewal is begun after this; one may be under way.
  void forget(std::uint64_t number);

 private:
  struct Row {
    Kept kept;
    Time renewed{};  // the last time that is known
    Time next{};
  };
  void start() KILN_REQUIRES(mutex_);
  void run();
  /// Renews what is due, or waits until something is.
  Status keep_one();
  void renew(std::uint64_t number, const Kept& kept);

  const Clock& clock_;
  Mutex mutex_;
  Condition changed_;
  std::map<std::uint64_t, Row> rows_ KILN_GUARDED_BY(mutex_);
  std::uint64_t numbers_ KILN_GUARDED_BY(mutex_) = 0;
  bool running_ KILN_GUARDED_BY(mutex_) = false;
  std::thread thread_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
