// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "bundle/bundle_description.hpp"

namespace kiln {

/// Maximum size of a statement in bytes.
inline constexpr std::size_t kMaxProvenance = 1 << 20;

/// A compiler that built artifacts of a bundle, as named in the description. A value type.
struct BundleCompiler {
  std::string name;     ///< nvrtc
  std::string version;  ///< 13.0.88
  Digest digest{};
  friend bool operator<(const BundleCompiler& a, const BundleCompiler& b) {
    return std::tie(a.name, a.version, a.digest) < std::tie(b.name, b.version, b.digest);
  }
};
/// Returns the compilers, sorted and without duplicates.
std::vector<BundleCompiler> compilers_of(const BundleDescription& description);

/// A statement about the builder and the sources of a bundle: in-toto Statement v1 with SLSA provenance v1. It is part
/// of the description and so is covered by the signature of the bundle. A value type.
struct Provenance {
  std::string builder;           ///< runDetails.builder.id
  std::string build_type;        ///< buildDefinition.buildType
  std::string source;            ///< the first resolved dependency with a commit; empty if there is none
  std::string commit;            ///< its gitCommit or sha1
  std::vector<Digest> subjects;  ///< SHA-256 of each subject

  /// Parses a statement. The message of `Code::Corrupt` continues the name of the statement: "is larger than 1 MiB". A
  /// statement without a subject is valid.
  static Result<Provenance> parse(std::string_view statement);
  /// Returns true if one of its subjects is the index with this digest.
  bool is_about(const Digest& index) const;
};

/// The input of a statement: a complete statement, or the facts for a minimal one. A value type.
struct ProvenanceSource {
  std::string statement;  ///< JSON; empty if the statement is built from the facts
  std::string builder;
  std::string source;
  std::string commit;
};
/// Returns the statement for a bundle with this index. The index becomes the only subject if the statement has none.
/// Returns `Code::InvalidArgument` if the given statement is about other content or is invalid.
Result<std::string> provenance_statement(const ProvenanceSource& from, const std::vector<BundleCompiler>& compilers,
                                         const Digest& index);

}  // namespace kiln
