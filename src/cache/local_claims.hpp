// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "base/clock.hpp"
#include "cache/claims.hpp"

namespace kiln {

/// Claims among the threads and processes of one host that use the same directory. Each request locks one byte of the
/// file `locks`. The kernel releases the lock when the holder dies, however it dies, with or without forked children.
/// Usable in a child after fork; the child holds none of its parent's claims. The first acquire opens the file and
/// creates the directory if needed. Thread-safe.
class LocalClaims final : public Claims {
 public:
  /// `clock` is used for deadlines and sleeps, and must outlive this object.
  explicit LocalClaims(std::string directory, const Clock& clock = system_clock());
  /// Uses `claims_directory(cache_root)`, which is evaluated at each acquire and not before, because a hit needs no
  /// claim.
  static LocalClaims for_cache(std::string cache_root, const Clock& clock = system_clock());

  AcquireResult acquire(const RequestKey& request, std::chrono::milliseconds wait,
                        const RequestContext& context) override;

 private:
  LocalClaims(std::string directory, std::string cache_root, const Clock& clock);

  const std::string directory_;  ///< empty means the directory of the cache
  const std::string cache_root_;
  const Clock& clock_;
};

/// Returns the directory for the claims of a cache: `<root>/v1` if it is local and writable, otherwise
/// `host_local_directory()`, which is created. If that fails, returns `<root>/v1`, and `acquire` reports the reason.
std::string claims_directory(const std::string& cache_root);

}  // namespace kiln
