#include "compile/option_check.hpp"

#include <string>

#include "base/error.hpp"

namespace kiln {
namespace {

bool is_option(std::string_view text, std::string_view option) {
  return text.starts_with(option) && (text.size() == option.size() || text[option.size()] == '=' ||
                                      text[option.size()] == '-' || text[option.size()] == ' ');
}

Error refusal(const Unit& unit, std::string_view option, std::string_view why) {
  return failure(Code::InvalidArgument, "unit '" + unit.name() + "' has the option " + std::string(option) +
                                            ", which kiln does not pass on: " + std::string(why));
}

}  // namespace

bool names_option_file(std::string_view option) {
  return option.find("options-file") != std::string_view::npos || option.find("-optf") != std::string_view::npos;
}

Status check_options(const Unit& unit, std::span<const RefusedOption> refused) {
  for (const std::string& option : unit.options()) {
    if (names_option_file(option)) return refusal(unit, option, "give the options themselves");
    for (const auto& [name, why] : refused) {
      if (is_option(option, name)) return refusal(unit, option, why);
    }
  }
  return {};
}

}  // namespace kiln
