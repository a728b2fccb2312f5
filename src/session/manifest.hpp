#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/cccl.hpp>
#include <kiln/result.hpp>
#include <kiln/target.hpp>

#include "session/source_unit.hpp"

namespace kiln {

/// What a kiln.toml lists: units, for which architectures, and as whose bundle. docs/manifest.md has its grammar.
struct Manifest {
  /// An algorithm of CCCL's, or a source file.
  struct Member {
    std::string name;  ///< no two have the same
    std::optional<cccl::Spec> spec;
    SourceUnit source;  ///< where there is no spec; its paths are those of the file, or below its folder
  };

  std::string name_space = "local";  ///< in whose name a bundle of them speaks
  std::uint64_t epoch = 0;           ///< and as of when
  std::vector<Target> architectures;
  std::vector<Member> members;  ///< algorithms first; else in the order of the file
};

/// What the text of a kiln.toml in `folder` says; no file is read. Code::InvalidArgument names line and column.
Result<Manifest> parse_manifest(std::string_view text, const std::string& folder);
/// Reads the file; an error names it.
Result<Manifest> read_manifest(const std::string& path);

}  // namespace kiln
