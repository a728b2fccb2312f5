// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as a configuration file and passes every value to its setting.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "session/config/settings.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto settings = kiln::parse_config({reinterpret_cast<const char*>(data), size});
  if (!settings) return 0;
  kiln::Config config;
  for (const kiln::FileSetting& setting : *settings) {
    const kiln::SettingSpec* kind = kiln::find_setting(setting.name);
    if (kind == nullptr) (void)kiln::suggest_name(setting.name, {"cache.dir", "cache.max_size"});
    for (const std::string& value : setting.values) {
      if (kind != nullptr) (void)kind->apply(config, value);
    }
  }
  return 0;
}
