// SPDX-License-Identifier: Apache-2.0
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

struct DependencySet;

/// The tier that an artifact came from, or Compiled.
enum class Origin : unsigned char { Compiled, Memory, Bundle, Disk, Remote };
KILN_API const char* to_string(Origin origin);

/// A kernel of an artifact: its name in the source and the symbol that the compiler gave it.
struct EntryPoint {
  std::string name;
  std::string symbol;

  friend bool operator==(const EntryPoint& a, const EntryPoint& b) { return a.name == b.name && a.symbol == b.symbol; }
  friend bool operator!=(const EntryPoint& a, const EntryPoint& b) { return !(a == b); }
};

/// The result of a compile: the code for a target and the data that a later process needs to use it.
struct KILN_API Artifact {
  Bytes bytes;
  Target target;
  std::vector<EntryPoint> entries;
  /// The files that the compile read; null if the compiler cannot read files.
  std::shared_ptr<const DependencySet> dependency_set;

  /// Metadata for display. It is not part of any key: artifacts with equal keys can differ here.
  struct Metadata {
    std::string unit;
    std::string compiler;
    double cost_ms = 0;  ///< compile time in milliseconds
    std::string log;     ///< compiler output
  } metadata;

  /// Returns the symbol of an entry, or null if the artifact does not have the entry.
  [[nodiscard]] const std::string* symbol(std::string_view entry) const;
};

/// An artifact, its keys and how the session got it.
struct ResolvedArtifact {
  Artifact artifact;
  RequestKey request;  ///< covers the unit, the target and the compiler
  ArtifactKey key;     ///< for an artifact that cannot be cached: the key that it would have had
  Origin origin = Origin::Compiled;
  double ms = 0;                   ///< milliseconds from the start of the work to its end
  std::string uncacheable_reason;  ///< the reason why the artifact is not cached; empty if it is
};

}  // namespace kiln
