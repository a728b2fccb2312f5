#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include <kiln/artifact.hpp>
#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "base/file_digests.hpp"
#include "claim/claims.hpp"
#include "compile/compiler.hpp"
#include "core/checked_items.hpp"
#include "core/recipe.hpp"
#include "observe/observer.hpp"
#include "store/history.hpp"
#include "store/store.hpp"

namespace kiln {

/// What a recipe came to.
struct Answer {
  Artifact artifact;  ///< with its closure
  RequestKey request;
  Key key;  ///< of an artifact that may not be cached: what it would have been
  Origin origin = Origin::Compiled;
  std::string not_cacheable = {};  ///< why it is not kept, where it is not
  double ms = 0;                   ///< from the question to the answer
  std::uint64_t flow = 0;          ///< the recipe's
};

/// The one road from a recipe to an artifact: look, claim the host, look again, claim the fleet, look again, compile,
/// put. Any thread.
/// A store or claims that fail never fail the answer: they cost a compile, and an event says why.
class Resolver {
 public:
  /// What the road runs over. None is owned; those that may be null say so.
  struct Parts {
    Store* store = nullptr;           ///< null: nothing is looked up and nothing is kept
    Claims* claims = nullptr;         ///< among the processes of this host; null: everyone compiles for himself
    Claims* fleet = nullptr;          ///< among hosts, by whoever has claimed his host; null: hosts do not wait
    BuildHistory* history = nullptr;  ///< null: `explain` knows nothing of earlier builds
    FileDigests* digests = nullptr;
    const Clock* clock = &system_clock();
    Observer observer;
    bool may_compile = true;                                                ///< false: a miss is Code::Refused
    bool asks_servers = false;                                              ///< a tier of the store is one
    std::chrono::nanoseconds server_time = std::chrono::milliseconds(100);  ///< what servers may take of one `get`
    std::chrono::milliseconds lease{0};                                     ///< how soon a claim of the fleet lapses
  };
  explicit Resolver(Parts parts) : parts_(std::move(parts)), checked_(std::make_unique<CheckedItems>(*parts_.clock)) {}

  /// What the tiers have, without compiling. Of `refused`, which a driver did not take, they are taken not to have it.
  Result<std::optional<Answer>> look(const Recipe& recipe, const Bytes* refused = nullptr);
  /// What the tiers have, or what this compiler makes of it.
  Result<Answer> get(const Recipe& recipe, Compiler& compiler, const Bytes* refused = nullptr);

 private:
  /// What the tiers of this host have: no server is asked.
  Result<std::optional<Answer>> look_here(const Recipe& recipe, const Bytes* refused);
  std::optional<Answer> find(const Recipe& recipe, const RequestKey& request, const Bytes* refused);
  void tell_of_miss(const Recipe& recipe) const;
  std::chrono::milliseconds wait_for_others(const Recipe& recipe) const;
  /// Either the claim, or what its holder published meanwhile; neither where it is not to be had in this time.
  std::optional<Answer> claim_or_find(Claims& claims, std::chrono::milliseconds wait, const Recipe& recipe,
                                      const Bytes* refused, std::unique_ptr<Claim>& claim);
  Result<Answer> compile(const Recipe& recipe, const RequestKey& request, Compiler& compiler);
  void publish(const Recipe& recipe, const Answer& answer, const std::string& not_cacheable);
  static Event event(Event::Kind kind, const Recipe& recipe);

  Parts parts_;
  std::unique_ptr<CheckedItems> checked_;
};

}  // namespace kiln
