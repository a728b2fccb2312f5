#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

namespace kiln {

/// One `name = value` of a configuration file; the name is dotted: `[cache]` and `dir = "/a"` give `cache.dir`.
struct FileSetting {
  std::string name;
  std::vector<std::string> values;  ///< as text; one, unless the file has an array
  unsigned line = 0;
};

/// What a configuration file says, names unchecked and in no order. An error names the line. Any bytes may be given.
Result<std::vector<FileSetting>> parse_config(std::string_view text);

}  // namespace kiln
