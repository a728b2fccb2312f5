// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "session/config/runtime_variables.hpp"
#include "session/config/settings.hpp"

namespace kiln {
namespace {

std::string page(const char* name) {
  std::ifstream file(std::string(KILN_SOURCE_DIR "/docs/") + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ConfigurationDocs, HaveRowForEverySettingAndVariable) {
  const std::string text = page("_generated/settings.md") + page("_generated/runtime-variables.md");
  for (const SettingSpec& kind : all_settings()) {
    const std::size_t start = text.find("| `" + std::string(kind.name) + "` |");
    ASSERT_NE(start, std::string::npos) << "no row (run tools/make_reference) for " << kind.name;
    const std::string row = text.substr(start, text.find('\n', start) - start);
    EXPECT_NE(row.find(kind.variable), std::string::npos) << row;
    EXPECT_NE(row.find(kind.default_value), std::string::npos) << row;
    EXPECT_NE(row.find(kind.meaning), std::string::npos) << row;
  }
  for (const RuntimeVariable& variable : kRuntimeVariables) {
    const std::size_t start = text.find("| `" + std::string(variable.name) + "` |");
    ASSERT_NE(start, std::string::npos) << "no row (run tools/make_reference) for " << variable.name;
    const std::string row = text.substr(start, text.find('\n', start) - start);
    EXPECT_NE(row.find(variable.default_value), std::string::npos) << row;
    EXPECT_NE(row.find(variable.meaning), std::string::npos) << row;
  }
  EXPECT_NE(page("reference/configuration.md").find("KILN_CONFIG"), std::string::npos);
}

}  // namespace
}  // namespace kiln
