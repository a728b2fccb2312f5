// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>
#include <kiln/unit.hpp>

namespace kiln {

/// A source file and its settings, from a command line or a kiln.toml. Both produce the same unit.
struct SourceUnit {
  /// A kernel of a family and the text that instantiates it.
  struct Instance {
    std::string entry;
    std::string source;
  };

  std::string file;
  std::string name;  ///< empty means the base name of the file
  bool opencl = false;
  std::vector<std::string> entries;
  std::vector<IncludeRoot> include_roots;
  std::vector<std::string> options;
  std::vector<Instance> instances;  ///< kernels of a family, whose preamble is the file; empty if the file is one unit
};

/// Returns the unit of a file with this text. A CUDA source with a quoted include gets its own directory as the first
/// include root, as with other compilers. If `from_file` is false, the source has no directory.
Unit make_unit(const SourceUnit& unit, std::string text, bool from_file = true);
/// Reads the file. Returns Code::Io if that fails.
Result<Unit> read_unit(const SourceUnit& unit);
/// Reads the file. Returns its unit or, for a family, one unit per instance. Code::Io if reading fails,
/// Code::InvalidArgument if the preamble of a family is empty.
Result<std::vector<Unit>> read_units(const SourceUnit& unit);

/// Returns true if a file of this name contains OpenCL C by default.
bool is_opencl_file(std::string_view file);

}  // namespace kiln
