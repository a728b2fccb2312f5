// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/key.hpp>
#include <kiln/result.hpp>
#include <kiln/target.hpp>

namespace kiln {

/// The reason why a unit in a bundle or a manifest is not the requested unit of the same name, for messages.
inline constexpr const char* kDifferentUnit =
    "has a different source, options, entries or number of include directories";

/// The human-readable description of a bundle, for `ls` and `explain`. No lookup uses it. Stored as JSON. A value type.
struct BundleDescription {
  struct File {
    std::string place;  ///< "root 0", "working directory", …; never an absolute path
    std::string name;
    std::string state;  ///< read, absent, present, sealed
    std::string digest;
    friend bool operator==(const File&, const File&) = default;
  };
  struct Artifact {
    std::string unit;  ///< name of the unit
    std::string kind;
    UnitKey unit_key;
    Target target;
    ArtifactKey key;
    RequestKey request;
    std::string compiler;
    std::string version;
    Digest compiler_digest{};
    std::uint64_t bytes = 0;  ///< uncompressed size
    std::vector<EntryPoint> entries;
    std::vector<File> files;  ///< files that the compile read
    friend bool operator==(const Artifact&, const Artifact&) = default;
  };
  std::string generator;            ///< kiln 0.1.0
  std::vector<Artifact> artifacts;  ///< sorted by unit, kind, target and key
  std::string provenance;           ///< the statement of provenance.hpp as JSON text; empty if there is none

  std::string encode() const;
  /// Limits of the parser. Returns `Code::Unsupported` before parsing if there are more values or deeper nesting, and
  /// `Code::Corrupt` for every other error.
  struct Limits {
    std::size_t values = 8'000'000;
    std::size_t artifacts = SIZE_MAX;
  };
  static Result<BundleDescription> parse(std::string_view text, const Limits& limits);
  static Result<BundleDescription> parse(std::string_view text) { return parse(text, Limits()); }
};

}  // namespace kiln
