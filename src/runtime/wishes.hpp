#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kiln/runtime/mode.hpp>

namespace kiln::runtime {

/// What whoever runs the program says by variables. A value.
struct Environment {
  std::optional<Mode> mode;
  std::optional<bool> rewrites;
  bool time_stages = false;
  /// Values that could not be used, each in a sentence that names the good ones.
  std::vector<std::string> complaints;

  static Environment read();
};

/// What is in force. A value.
struct Wishes {
  Mode mode = Mode::Auto;
  Source source = Source::Default;
  bool rewrites = true;
  bool time_stages = false;
  std::uint64_t generation = 0;  ///< grows when the mode is set: what was chosen by older wishes is not kept
};

/// Who asked for the mode, for a sentence: "KILN_EXECUTION_MODE", "the program".
const char* asked_by(Source source);

}  // namespace kiln::runtime
