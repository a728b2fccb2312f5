#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

namespace kiln {

/// One `name = value` of a configuration file. The name is dotted: `[cache]` and `dir = "/a"` give `cache.dir`.
struct FileSetting {
  std::string name;
  std::vector<std::string> values;  ///< as text; one value, unless the file has an array
  unsigned line = 0;
};

/// Returns the settings in a configuration file, with unchecked names and in no particular order. An error names the
/// line. Accepts arbitrary bytes.
Result<std::vector<FileSetting>> parse_config(std::string_view text);

}  // namespace kiln
