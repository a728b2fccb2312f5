// SPDX-License-Identifier: Apache-2.0
#include "session/config/config.hpp"

#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/render_json.hpp"
#include "runtime/settings/variable_values.hpp"
#include "session/config/settings.hpp"

namespace kiln::cli {

int config_show_command(const Arguments& arguments, Console& console) {
  const Config config = Config::load({}, EventEmitter(console.listener()));
  const runtime::VariableValues variables = runtime::VariableValues::read();
  for (const std::string& warning : variables.warnings) console.warn(warning);
  if (arguments.json) {
    console.print(config_json(config, variables.settings));
    return kSuccess;
  }
  std::vector<std::vector<std::string>> rows = {{"SETTING", "VALUE", "FROM"}};
  for (const Setting& setting : config.settings) {
    const SettingSpec* kind = find_setting(setting.name);
    const char* const nothing = kind != nullptr && kind->is_path() ? "(auto-detected)" : "(none)";
    rows.push_back({setting.name, setting.value.empty() ? nothing : setting.value,
                    setting.origin + (setting.locked ? ", locked" : "")});
  }
  console.print(table_text(rows));
  rows = {{"VARIABLE OF KILN-RUNTIME", "VALUE", "FROM"}};
  for (const Setting& variable : variables.settings) rows.push_back({variable.name, variable.value, variable.origin});
  console.print("\n" + table_text(rows));
  return kSuccess;
}

}  // namespace kiln::cli
