// kiln bundle units: the units of a kiln.toml as C++, for the program that has the bundle.
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output.hpp"
#include "apps/kiln/render_bundle_json.hpp"
#include "apps/kiln/unit_header.hpp"
#include "base/files.hpp"

namespace kiln::cli {

int bundle_units_command(const Arguments& arguments, Console& console) {
  // include/heat_units.hpp has the namespace heat_units.
  const std::string file = arguments.output.substr(arguments.output.rfind('/') + 1);
  const std::string name_space = arguments.output == "-" ? "units" : file.substr(0, file.find('.'));
  const Result<std::string> text = unit_header(arguments.manifest, name_space);
  if (!text) return report(text.error(), console);
  if (arguments.output == "-") {
    const Status shown = write_output("-", *text);
    return shown ? kDone : report(shown.error(), console);
  }
  // One that is right already is left alone, so that nothing is built again for it.
  const Result<std::optional<Bytes>> before = read_file(arguments.output);
  const bool differs = !before || !*before || (*before)->view() != *text;
  if (differs) {
    if (const Status written = replace_file(arguments.output, *text); !written) {
      return report(written.error(), console);
    }
  }
  console.print(arguments.json ? bundle_units_json(arguments.output, differs)
                               : arguments.output + (differs ? " was written" : " is right as it is"));
  return kDone;
}

}  // namespace kiln::cli
