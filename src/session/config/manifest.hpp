// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/cccl.hpp>
#include <kiln/result.hpp>
#include <kiln/target.hpp>

#include "session/config/source_unit.hpp"

namespace kiln {

/// The contents of a kiln.toml: units, their architectures and the identity of their bundle.
/// docs/reference/kiln-toml.md has its grammar.
struct Manifest {
  /// A CCCL algorithm, a source file or a family of kernels.
  struct UnitEntry {
    std::string name;  ///< unique in the file
    std::optional<cccl::Spec> spec;
    SourceUnit source;  ///< if there is no spec; a family has instances; paths are absolute or relative to the
                        ///< directory of the kiln.toml
  };

  std::string name_space = "local";  ///< namespace of a bundle of the units
  std::uint64_t epoch = 0;           ///< epoch of that bundle
  std::vector<Target> architectures;
  std::vector<UnitEntry> members;  ///< algorithms first, then sources, then families; each in file order
};

/// Parses the text of a kiln.toml in `directory`. Reads no file. Code::InvalidArgument names line and column.
Result<Manifest> parse_manifest(std::string_view text, const std::string& directory);
/// Reads and parses the file. An error names it.
Result<Manifest> read_manifest(const std::string& path);

}  // namespace kiln
