// SPDX-License-Identifier: Apache-2.0
#include "backends/option_check.hpp"

#include <string>

#include "base/error.hpp"

namespace kiln {
namespace {

bool is_option(std::string_view text, std::string_view option) {
  return text.starts_with(option) && (text.size() == option.size() || text[option.size()] == '=' ||
                                      text[option.size()] == '-' || text[option.size()] == ' ');
}

Error rejection(const Unit& unit, std::string_view option, std::string_view reason) {
  return make_error(Code::InvalidArgument, "unit '" + unit.name() + "' has the option " + std::string(option) +
                                               ", which kiln does not pass to the compiler: " + std::string(reason));
}

}  // namespace

bool names_option_file(std::string_view option) {
  return option.find("options-file") != std::string_view::npos || option.find("-optf") != std::string_view::npos;
}

Status check_options(const Unit& unit, std::span<const RejectedOption> rejected) {
  for (const std::string& option : unit.options()) {
    if (names_option_file(option)) return rejection(unit, option, "pass the options directly");
    for (const auto& [name, reason] : rejected) {
      if (is_option(option, name)) return rejection(unit, option, reason);
    }
  }
  return {};
}

}  // namespace kiln
