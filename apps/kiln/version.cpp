// SPDX-License-Identifier: Apache-2.0
#include <kiln/version.hpp>

#include <string>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/render_json.hpp"

namespace kiln::cli {

int version_command(const Arguments& arguments, Console& console) {
  console.print(arguments.json ? version_json() : "kiln " + std::string(version()));
  return kSuccess;
}

}  // namespace kiln::cli
