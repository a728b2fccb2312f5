// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <kiln/artifact.hpp>
#include <kiln/bytes.hpp>
#include <kiln/export.hpp>
#include <kiln/result.hpp>
#include <kiln/wait.hpp>

namespace kiln {

/// A cache for code that another system compiled. kiln stores it in its tiers under `ArtifactKey::external`, verifies
/// it when it is read, shares it between processes and hosts, and ships it in bundles. Created by
/// `Session::external_cache`. Copies share the session's state. Thread-safe.
class KILN_API ExternalCache {
 public:
  /// A cache hit: the bytes and the tier that had them.
  struct Hit {
    Bytes bytes;
    Origin origin = Origin::Memory;
  };
  /// An exclusive claim to compile one missing entry, among the processes of this host and, if leases are configured,
  /// of the fleet. The claim ends with its destructor or with its process. It only avoids duplicate work: a waiter
  /// waits for a bounded time and then compiles the entry itself, and if the process that holds the claim is stopped
  /// for two seconds, one waiter takes it over. Any thread can destroy it.
  class KILN_API CompileClaim {
   public:
    CompileClaim(CompileClaim&& other) noexcept;
    CompileClaim& operator=(CompileClaim&& other) noexcept;
    ~CompileClaim();

   private:
    friend class ExternalCache;
    struct State;
    explicit CompileClaim(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };
  /// The result of `get_or_claim`: a cache hit in `hit`, or a claim in `claim` for the caller to compile and `put` the
  /// entry. Both are empty if another holder is still compiling when the wait ends, or if claims are not available; the
  /// caller then compiles without one.
  struct LookupResult {
    std::optional<Hit> hit;
    std::optional<CompileClaim> claim;
  };

  /// Returns the entry if a tier has it. A miss and a failing store both return no value; an event reports which one it
  /// was.
  [[nodiscard]] std::optional<Hit> get(std::string_view key) const;
  /// Same as `get`, but on a miss waits at most `wait` for the holder of the claim to compile the entry. The wait ends
  /// within a quarter of a second after its function returns false.
  [[nodiscard]] LookupResult get_or_claim(std::string_view key, Wait wait) const;
  /// Stores an entry in this host's cache and, if one is configured, in the fleet's. `name` appears in events and
  /// listings. `ms` is the compile time, which eviction uses as the cost of the entry. Equal keys must mean equivalent
  /// bytes: an existing entry can stay or be replaced.
  Status put(std::string_view key, Bytes bytes, const std::string& name = {}, double ms = 0) const;

  /// These functions affect this system's entries in this user's cache only, not bundles, other users' caches or the
  /// fleet's. `count` and `clear` read every entry of the cache.
  bool remove(std::string_view key) const;  ///< false if the entry does not exist or cannot be removed
  Result<std::size_t> count() const;        ///< returns the number of entries
  Result<std::size_t> clear() const;        ///< returns the number of removed entries

  /// Returns the name of the system.
  const std::string& system() const;

  struct State;

 private:
  friend class Session;
  explicit ExternalCache(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace kiln
