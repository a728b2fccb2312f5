#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <kiln/artifact.hpp>
#include <kiln/bytes.hpp>
#include <kiln/export.hpp>
#include <kiln/result.hpp>

namespace kiln {

/// What another system compiled, in kiln's tiers under Key::foreign: checked when read, shared between processes and
/// hosts, shipped in bundles. A value; copies share the session's state; any thread. It comes from Session::foreign.
class KILN_API ForeignCache {
 public:
  struct Found {
    Bytes bytes;
    Origin origin = Origin::Memory;
  };
  /// The right to make what nobody has, among the processes of this host and, where leases are configured, of the
  /// fleet. It ends when it is destroyed, or with its process, and saves work only: whoever waits for it waits for a
  /// bounded time and then makes it for himself. May be let go on another thread.
  class KILN_API Turn {
   public:
    Turn(Turn&& other) noexcept;
    Turn& operator=(Turn&& other) noexcept;
    ~Turn();

   private:
    friend class ForeignCache;
    struct State;
    explicit Turn(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };
  /// `found`, or it is the caller's turn to make and `put` it. Both are empty where somebody else is still at it after
  /// the wait, or turns cannot be had: make it without one.
  struct Answer {
    std::optional<Found> found;
    std::optional<Turn> turn;
  };

  /// What a tier has; a miss, and a store that fails, are an absent value: an event says which.
  std::optional<Found> get(std::string_view key) const;
  /// As `get`; on a miss waits at most `wait` for whoever has the turn to make it. A wait ends within a quarter of a
  /// second when `over`, called on this thread, says that nobody wants it any more.
  Answer get_or_claim(std::string_view key, std::chrono::nanoseconds wait,
                      const std::function<bool()>& over = {}) const;
  /// Keeps it: in this host's cache, and in the fleet's where one is configured. `name` is what people and events call
  /// it, `ms` what it cost to make, by which eviction weighs it. Equal keys are taken to mean equivalent bytes: what is
  /// there already may stay or be replaced.
  Status put(std::string_view key, Bytes bytes, const std::string& name = {}, double ms = 0) const;

  /// Of this system, in this user's own cache; bundles, the caches of others and the fleet's are not touched. The last
  /// two look at every entry that there is.
  bool remove(std::string_view key) const;  ///< false where it was not there, or cannot be removed
  Result<std::size_t> count() const;
  Result<std::size_t> clear() const;  ///< how many were removed

  const std::string& system() const;

  struct State;

 private:
  friend class Session;
  explicit ForeignCache(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace kiln
