// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <kiln/export.hpp>
#include <kiln/kernel.hpp>
#include <kiln/unit.hpp>
#include <kiln/wait.hpp>

namespace kiln {

class Session;
using Units = std::vector<Unit>;

/// The units that a module requires, declared at namespace scope. The constructor only stores a function and does no
/// work at load time; the first request calls the function to get the units. Every later request costs one branch.
class KILN_API Requirements {
 public:
  constexpr Requirements(const char* name, Units (*yield)()) : name_(name), units_(yield) {}
  /// Same, for units that are known only when the program runs. `name` and `units` must outlive the object.
  constexpr Requirements(const char* name, const Units* units) : name_(name), given_(units) {}
  Requirements(const Requirements&) = delete;
  Requirements& operator=(const Requirements&) = delete;

  const char* name() const { return name_; }
  Units units() const { return given_ != nullptr ? *given_ : units_(); }

 private:
  friend class Session;
  const char* name_;
  Units (*units_)() = nullptr;
  const Units* given_ = nullptr;
  mutable std::atomic<std::uint64_t> requested_by_{0};  // id of the session that requested it last
};

/// The time that `WarmupPlan::ensure_warm` waits by default.
inline constexpr std::chrono::seconds kPlanTimeout{3};

/// A unit that is not ready, and the reason.
struct NotReady {
  std::string unit;
  std::string target;  ///< empty if there is no device
  std::string reason;
};

/// The requirements of the stages of a pipeline, to be compiled before it runs. The `Requirements` objects must outlive
/// it. Not thread-safe.
class KILN_API WarmupPlan {
 public:
  explicit WarmupPlan(std::string name) : name_(std::move(name)) {}
  WarmupPlan& stage(const Requirements& requirements) {
    stages_.push_back(&requirements);
    return *this;
  }
  /// Same, for units that are known only when the program runs.
  WarmupPlan& stage(const Units& units) {
    units_.insert(units_.end(), units.begin(), units.end());
    return *this;
  }
  /// Requests all units and waits until each one is ready or has failed, at most `wait` in total. Returns the units
  /// that are not ready by then: without a device, all of them.
  [[nodiscard]] std::vector<NotReady> ensure_warm(Session& session, Wait wait = kPlanTimeout,
                                                  Caller caller = Caller::here()) const;

  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::vector<const Requirements*> stages_;
  Units units_;
};

}  // namespace kiln
