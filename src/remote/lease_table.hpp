#pragma once

#include <chrono>
#include <string>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

namespace kiln {

/// Who compiles what, for a while: a row per request, which lapses by itself. Redis has one, a shared folder can be
/// one. Every implementation passes tests/conformance/lease_table_conformance.hpp. Any thread may call any function.
/// Nothing is opened before the first call, and none takes longer than its `limit`. Errors are as a Depot's, without
/// secrets.
class LeaseTable {
 public:
  using Time = std::chrono::nanoseconds;
  virtual ~LeaseTable() = default;

  /// True: nobody had it, and for `lease` from now it is this owner's. `owner` is a token that nobody else has.
  virtual Result<bool> take(const RequestKey& request, const std::string& owner, Time lease, Time limit) = 0;
  /// For `lease` from now, if it is still this owner's; false: it is not.
  virtual Result<bool> renew(const RequestKey& request, const std::string& owner, Time lease, Time limit) = 0;
  /// Lets go, if it is this owner's; else nothing.
  virtual Status release(const RequestKey& request, const std::string& owner, Time limit) = 0;
  /// Zero: nobody has it. Else how soon to look again in order to see it lapse: what is left of it, or less where only
  /// looking tells whether it was renewed.
  virtual Result<Time> held(const RequestKey& request, Time limit) = 0;
  /// One of `count` hedges of a request per `window`, in the whole fleet; false: all are drawn.
  virtual Result<bool> draw(const RequestKey& request, unsigned count, Time window, Time limit) = 0;

  virtual Status probe(Time limit) = 0;
  /// For people, without credentials: "redis://leases.example:6379".
  virtual std::string describe() const = 0;
};

}  // namespace kiln
