#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <kiln/export.hpp>
#include <kiln/kernel.hpp>
#include <kiln/unit.hpp>

namespace kiln {

class Session;
using Units = std::vector<Unit>;

/// What a module of a program will use, said once at namespace scope. Making one does nothing, not even at load time:
/// it holds a function that yields the units, which the first request calls. After that a request costs a branch.
class KILN_API Needs {
 public:
  constexpr Needs(const char* name, Units (*yield)()) : name_(name), units_(yield) {}
  Needs(const Needs&) = delete;
  Needs& operator=(const Needs&) = delete;

  const char* name() const { return name_; }
  Units units() const { return units_(); }

 private:
  friend class Session;
  const char* name_;
  Units (*units_)();
  mutable std::atomic<std::uint64_t> requested_by_{0};  // the session, by its number, that was asked last
};

/// A unit that is not ready, and why.
struct Cold {
  std::string unit;
  std::string target;
  std::string why;
};

/// The needs of the stages of a pipeline, to be warm before it runs. A value. The needs must outlive it.
class KILN_API Plan {
 public:
  explicit Plan(std::string name) : name_(std::move(name)) {}
  Plan& stage(const Needs& needs) {
    stages_.push_back(&needs);
    return *this;
  }
  /// Requests all of them and waits, at most `limit` in all, until each is ready or has failed; what is still cold
  /// then.
  std::vector<Cold> ensure_warm(Session& session, std::chrono::nanoseconds limit, Caller caller = Caller::here()) const;

  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::vector<const Needs*> stages_;
};

}  // namespace kiln
