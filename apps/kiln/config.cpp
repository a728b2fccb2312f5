#include "session/config.hpp"

#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/render_json.hpp"
#include "session/settings.hpp"

namespace kiln::cli {

int config_show_command(const Arguments& arguments, Console& console) {
  const Config config = Config::load({}, Observer(console.listener()));
  if (arguments.json) {
    console.print(config_json(config));
    return kDone;
  }
  std::vector<std::vector<std::string>> rows = {{"SETTING", "VALUE", "FROM"}};
  for (const Setting& setting : config.settings) {
    const SettingKind* kind = find_setting(setting.name);
    const char* const nothing = kind != nullptr && kind->is_path ? "(searched for)" : "(none)";
    rows.push_back({setting.name, setting.value.empty() ? nothing : setting.value,
                    setting.origin + (setting.locked ? ", locked" : "")});
  }
  console.print(table_text(rows));
  return kDone;
}

}  // namespace kiln::cli
