// kiln bundle units: the units of a kiln.toml as C++, for the program that has the bundle.
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output.hpp"
#include "apps/kiln/unit_header.hpp"
#include "base/files.hpp"

namespace kiln::cli {

int bundle_units_command(const Arguments& arguments, Console& console) {
  // include/heat_units.hpp has the namespace heat_units.
  const std::string file = arguments.output.substr(arguments.output.rfind('/') + 1);
  const std::string name_space = arguments.output == "-" ? "units" : file.substr(0, file.find('.'));
  const Result<std::string> text = unit_header(arguments.manifest, name_space);
  if (!text) {
    console.error(text.error());
    return exit_code_of(text.error().code);
  }
  // One that is right already is left alone, so that nothing is built again for it.
  if (arguments.output != "-") {
    const Result<std::optional<Bytes>> before = read_file(arguments.output);
    if (before && *before && (*before)->view() == *text) return kDone;
  }
  const Status written = arguments.output == "-" ? write_output("-", *text) : replace_file(arguments.output, *text);
  if (written) return kDone;
  console.error(written.error());
  return kFailed;
}

}  // namespace kiln::cli
