#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>
#include <kiln/unit.hpp>

namespace kiln {

/// A source file and what goes with it, as a command line or a kiln.toml says it: both make the same unit of it.
struct SourceUnit {
  std::string file;
  std::string name;  ///< empty: the file's base name
  bool opencl = false;
  std::vector<std::string> entries;
  std::vector<IncludeRoot> include_roots;
  std::vector<std::string> options;
};

/// The unit of a file that has this text. A CUDA source that includes anything in quotes gets its own folder as the
/// first include root, as with other compilers; with `from_file` false it lies in no folder.
Unit make_unit(const SourceUnit& unit, std::string text, bool from_file = true);
/// Reads the file. Code::Io where that cannot be done.
Result<Unit> read_unit(const SourceUnit& unit);

/// Whether a file of this name has OpenCL C in it, where nobody says otherwise.
bool is_opencl_file(std::string_view file);

}  // namespace kiln
