// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "base/clock.hpp"

namespace kiln {

/// A table of leases: one record per request, which names the owner that compiles it and expires by itself. It is
/// stored in Redis or in a shared directory. Every implementation passes tests/conformance/lease_table_conformance.hpp,
/// opens nothing before the first call and ends each call at its deadline. Errors are those of `ObjectStore`, without
/// secrets. Thread-safe.
class LeaseTable {
 public:
  using Time = std::chrono::nanoseconds;
  virtual ~LeaseTable() = default;

  /// Acquires the lease for `lease` from now. Returns false if it is held. `owner` is a unique token.
  virtual Result<bool> try_acquire(const RequestKey& request, const std::string& owner, Time lease,
                                   const Deadline& deadline) = 0;
  /// Extends the lease to `lease` from now. Returns false if this owner no longer holds it.
  virtual Result<bool> renew(const RequestKey& request, const std::string& owner, Time lease,
                             const Deadline& deadline) = 0;
  /// Releases the lease if this owner holds it; otherwise does nothing.
  virtual Status release(const RequestKey& request, const std::string& owner, const Deadline& deadline) = 0;
  /// Returns 0 if the lease is free. Otherwise returns the time until the next check that can see it expire: the
  /// remaining time, or less if only a check shows whether it was renewed.
  virtual Result<Time> remaining_ttl(const RequestKey& request, const Deadline& deadline) = 0;
  /// Acquires one of `count` hedges of a request per `window`, in the whole fleet. Returns false if all are taken.
  virtual Result<bool> try_hedge(const RequestKey& request, unsigned count, Time window, const Deadline& deadline) = 0;

  virtual Status probe(const Deadline& deadline) = 0;
  /// Returns a human-readable name without credentials, for example "redis://leases.example:6379".
  virtual std::string describe() const = 0;
};

}  // namespace kiln
