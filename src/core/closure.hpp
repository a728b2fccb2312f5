#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>
#include <kiln/unit.hpp>

#include "base/file_digests.hpp"

namespace kiln {

/// Where the names of a closure are looked up on this machine.
struct Places {
  std::string working_directory;   ///< absolute
  std::vector<IncludeRoot> roots;  ///< in the order of the unit's include roots

  std::string path_of(std::uint16_t root, std::string_view name) const;
};

/// What a compile read, in the order in which it first asked, and the places where it looked and found nothing.
/// Names are relative to a root, so that another checkout or another host with the same files has the same closure.
struct Closure {
  static constexpr std::uint16_t kWorkingDirectory = 0xfffe;
  static constexpr std::uint16_t kAbsolute = 0xffff;

  enum class State : std::uint8_t {
    Read = 1,     ///< a file with this content
    Absent = 2,   ///< neither a file nor a folder, at this name or (a folder) at all names below it
    Present = 3,  ///< a file of whatever content: it was asked for and not read
    Sealed = 4,   ///< a sealed root: `digest` is its seal's, and stands for all that was read and not found there
  };
  struct Item {
    std::uint16_t root = kAbsolute;
    State state = State::Read;
    std::string name;
    Digest digest{};              ///< Read and Sealed
    std::int64_t modified_s = 0;  ///< of timed closures; zero in others
    friend bool operator==(const Item&, const Item&) = default;
  };

  /// Two files that were read, have the same content and say `#pragma once`: the compiler reads the second only where
  /// it is another file than the first, not a link to it. So that, too, is an input.
  struct Twins {
    std::uint32_t first = 0;  ///< both are places in `items`
    std::uint32_t second = 0;
    bool one_file = false;
    friend bool operator==(const Twins&, const Twins&) = default;
  };
  /// Include root `inner` is `outer` (a root, or the working directory) and `below`: a file below both has two names,
  /// of which the closure has only one, and nobody can tell by which the compiler found it.
  struct Nesting {
    std::uint16_t outer = kAbsolute;
    std::uint16_t inner = kAbsolute;
    std::string below;
    friend bool operator==(const Nesting&, const Nesting&) = default;
  };

  std::vector<Item> items;
  std::vector<Twins> twins;
  std::vector<Nesting> nestings;
  /// Set where the output depends on where files are (debug information, `__FILE__`): the places, as they were spelt.
  bool located = false;
  /// Set where it depends on their modification times too: debug information carries them, in seconds.
  bool timed = false;
  std::string working_directory;
  std::vector<std::string> root_paths;

  bool empty() const { return items.empty() && nestings.empty() && !located && !timed; }
  /// Whether it speaks of this host alone: places or times are in it, or files that lie below no root.
  bool of_this_host() const;
  friend bool operator==(const Closure&, const Closure&) = default;

  /// The canonical bytes: what a Key covers and what stores keep. `docs/closure-format.md` has the grammar.
  std::string encode() const;
  static Result<Closure> decode(std::string_view bytes);
};

/// A way in which the files of today differ from a closure.
struct Mismatch {
  Closure::Item expected;
  std::string path;             ///< absolute
  std::optional<Digest> found;  ///< the content now, where there is a file
  std::string text;             ///< for people
};

/// How the include roots lie in one another, as far as their spelling tells.
std::vector<Closure::Nesting> nestings_of(const Places& places);

/// Whether every file is as the closure says; the first that is not otherwise.
std::optional<Mismatch> check(const Closure& closure, const Places& places, FileDigests& digests);

/// The two halves of it, for whoever knows a part of the answer: these items, by their places in the closure, and all
/// that is said of no single item.
std::optional<Mismatch> check_items(const Closure& closure, std::span<const std::uint32_t> which, const Places& places,
                                    FileDigests& digests);
std::optional<Mismatch> check_bonds(const Closure& closure, const Places& places);

/// Every file that is not as the closure says: for people, where `check` stops at the first.
std::vector<Mismatch> mismatches(const Closure& closure, const Places& places, FileDigests& digests);

}  // namespace kiln
