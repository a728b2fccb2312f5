#pragma once

#include <chrono>
#include <string>

#include "base/clock.hpp"
#include "claim/claims.hpp"

namespace kiln {

/// Claims among the threads and processes of one host that name the same folder: one byte of the file `locks` in it
/// per request, locked by the kernel, which lets it go when the holder dies however it dies, forked children or not.
/// Any thread; usable in a child after fork, which holds nothing of its parent's. Nothing is opened or made before the
/// first acquire; the folder is made then if need be.
class LocalClaims final : public Claims {
 public:
  /// `clock` decides deadlines and naps, and must outlive this.
  explicit LocalClaims(std::string folder, const Clock& clock = system_clock());
  /// In `claims_folder(cache_root)`, which is asked for at each acquire and not before: a hit claims nothing.
  static LocalClaims for_cache(std::string cache_root, const Clock& clock = system_clock());

  Answer acquire(const RequestKey& request, std::chrono::milliseconds wait, const std::stop_token& stop = {}) override;

 private:
  LocalClaims(std::string folder, std::string cache_root, const Clock& clock);

  const std::string folder_;  ///< empty: that of the cache
  const std::string cache_root_;
  const Clock& clock_;
};

/// Where the claims for a cache belong: `<root>/v1` where that is on this host and can be written to, else
/// `host_local_directory()`, which it makes. Where that fails too it is `<root>/v1` again: acquire will say why not.
std::string claims_folder(const std::string& cache_root);

}  // namespace kiln
