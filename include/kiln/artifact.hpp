#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/bytes.hpp>
#include <kiln/export.hpp>
#include <kiln/key.hpp>
#include <kiln/target.hpp>

namespace kiln {

struct Closure;

/// Which tier answered.
enum class Origin : unsigned char { Compiled, Memory, Bundle, Disk, Remote };
KILN_API const char* to_string(Origin origin);

/// A kernel of an artifact: the name that the author wrote and the symbol that the compiler made of it.
struct Entry {
  std::string name;
  std::string symbol;

  friend bool operator==(const Entry& a, const Entry& b) { return a.name == b.name && a.symbol == b.symbol; }
};

/// What a compile left behind: bytes for a target, and what a later process needs to use them. A value.
struct KILN_API Artifact {
  Bytes bytes;
  Target target;
  std::vector<Entry> entries;
  /// What the compile read, if it could read files at all.
  std::shared_ptr<const Closure> closure;

  /// Said to people, never part of a key: equal keys may differ here.
  struct Description {
    std::string unit;
    std::string compiler;
    double cost_ms = 0;
    std::string log;
  } about;

  /// The symbol of an entry, or null where the artifact has no such entry.
  const std::string* symbol(std::string_view entry) const;
};

}  // namespace kiln
