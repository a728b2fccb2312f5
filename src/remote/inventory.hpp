#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "base/advance.hpp"
#include "remote/depot.hpp"
#include "trust/policy.hpp"

namespace kiln {

/// What is in a depot that can list itself, for the people who run it. Bodies are judged as a reader would judge them.
struct RemoteInventory {
  struct Entry {
    Key key;
    Digest content;
    std::uint64_t bytes = 0;  ///< of the statement and the content
    std::string name_space;   ///< empty where nothing could be read
    std::uint64_t epoch = 0;
    bool live = false;
    std::string fault;                    ///< why a reader with this policy would reject it; empty: he would not
    std::chrono::nanoseconds modified{};  ///< by the depot's clock
  };
  std::vector<Entry> entries;
  std::uint64_t hints = 0;  ///< bodies of closures
  std::uint64_t hint_bytes = 0;
  std::uint64_t unused = 0;  ///< contents that no entry states
  std::uint64_t unused_bytes = 0;
};

/// Reads the whole of it; with `contents` each content is fetched and checked too.
Result<RemoteInventory> take_inventory(Depot& depot, const TrustPolicy& policy, std::chrono::nanoseconds wall,
                                       bool contents, const Advance& advance = {});

struct RemoteCleaning {
  std::uint64_t most_bytes = 0;              ///< of all entries; the oldest go first; 0: no bound
  std::optional<std::uint64_t> least_epoch;  ///< entries of `name_space` before it go
  std::string name_space;                    ///< empty: every namespace
  bool dry_run = false;                      ///< only count what would go
};
struct RemoteCleaned {
  std::uint64_t entries = 0;
  std::uint64_t contents = 0;
  std::uint64_t bytes = 0;
};
/// Removes what the cleaning says, and contents that nobody states, whether this policy believes him or not. A reader
/// that comes meanwhile finds nothing.
Result<RemoteCleaned> clean(Depot& depot, const TrustPolicy& policy, std::chrono::nanoseconds wall,
                            const RemoteCleaning& cleaning, const Advance& advance = {});

}  // namespace kiln
