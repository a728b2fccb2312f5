// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/error_hints.hpp"
#include "support/fixtures/files.hpp"

namespace kiln::cli {
namespace {

constexpr const char* kCommands[] = {
    "kiln compile", "kiln cache verify", "kiln bundle verify", "kiln warm", "kiln remote gc", "kiln audit", ""};

// The codes are contiguous, and the value after the last one has no name.
std::vector<Code> all_codes() {
  std::vector<Code> codes;
  for (int i = 0; std::string_view(to_string(static_cast<Code>(i))) != "unknown"; ++i) {
    codes.push_back(static_cast<Code>(i));
  }
  return codes;
}

std::string table(const char* name) {
  return test::read_text(KILN_SOURCE_DIR "/docs/_generated/" + std::string(name) + ".md");
}

std::string row_with(const std::string& text, const std::string& start) {
  const std::size_t at = text.find(start);
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

TEST(Hints, ExistForEveryCodeAndCommand) {
  ASSERT_EQ(all_codes().size(), 12u)
      << "a code was added: give it a hint, an action in tools/reference.toml and count it here";
  for (const char* command : kCommands) {
    std::set<std::string_view> different;
    for (const Code code : all_codes()) {
      const std::string_view hint = hint_for(code, command);
      EXPECT_GT(hint.size(), 10u) << to_string(code);
      EXPECT_TRUE(different.insert(hint).second) << to_string(code) << " repeats the hint of another code: " << hint;
    }
  }
}

TEST(ExitCodeDocs, HaveRowForEveryErrorCodeWithItsExitCode) {
  const std::string text = table("error-codes");
  const std::string header = test::read_text(KILN_SOURCE_DIR "/include/kiln/result.hpp");
  for (const Code code : all_codes()) {
    const std::string row = row_with(text, "| `" + std::string(to_string(code)) + "` |");
    ASSERT_NE(row, "") << "no row (run tools/make_reference) for " << to_string(code);
    EXPECT_TRUE(row.ends_with("| " + std::to_string(exit_code_of(code)) + " |")) << row;
    std::smatch name;
    ASSERT_TRUE(std::regex_search(row, name, std::regex("`Code::([A-Za-z]+)`"))) << row;
    EXPECT_NE(header.find("  " + name[1].str() + ","), std::string::npos) << row;
  }
}

TEST(ExitCodeDocs, HaveRowForEveryExitCodeAndNoOther) {
  const std::string text = table("exit-codes");
  const std::string header = test::read_text(KILN_SOURCE_DIR "/apps/kiln/exit_code.hpp");
  const std::regex declared("  (k[A-Z][A-Za-z]+) = ([0-9]+),");
  std::set<std::string> numbers;
  for (auto at = std::sregex_iterator(header.begin(), header.end(), declared); at != std::sregex_iterator(); ++at) {
    numbers.insert((*at)[2]);
    EXPECT_NE(row_with(text, "| " + (*at)[2].str() + " | `" + (*at)[1].str() + "` |"), "") << (*at)[0];
  }
  EXPECT_GE(numbers.size(), 9u);
  const std::regex row("\n\\| ([0-9]+) \\|");
  for (auto at = std::sregex_iterator(text.begin(), text.end(), row); at != std::sregex_iterator(); ++at) {
    EXPECT_TRUE(numbers.contains((*at)[1])) << (*at)[0];
  }
}

}  // namespace
}  // namespace kiln::cli
