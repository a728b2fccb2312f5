#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "session/config/runtime_variables.hpp"
#include "session/config/settings.hpp"

namespace kiln {
namespace {

TEST(ConfigurationDocs, HaveRowForEverySettingAndVariable) {
  std::ifstream file(KILN_SOURCE_DIR "/docs/configuration.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  for (const SettingSpec& kind : all_settings()) {
    const std::size_t start = text.find("| `" + std::string(kind.name) + "` |");
    ASSERT_NE(start, std::string::npos) << "docs/configuration.md has no row for " << kind.name;
    const std::string row = text.substr(start, text.find('\n', start) - start);
    EXPECT_NE(row.find(kind.variable), std::string::npos) << row;
    EXPECT_NE(row.find(kind.default_value), std::string::npos) << row;
    EXPECT_NE(row.find(kind.meaning), std::string::npos) << row;
  }
  for (const RuntimeVariable& variable : kRuntimeVariables) {
    const std::size_t start = text.find("| `" + std::string(variable.name) + "` |");
    ASSERT_NE(start, std::string::npos) << "docs/configuration.md has no row for " << variable.name;
    const std::string row = text.substr(start, text.find('\n', start) - start);
    EXPECT_NE(row.find(variable.default_value), std::string::npos) << row;
    EXPECT_NE(row.find(variable.meaning), std::string::npos) << row;
  }
  EXPECT_NE(text.find("KILN_CONFIG"), std::string::npos);
}

}  // namespace
}  // namespace kiln
