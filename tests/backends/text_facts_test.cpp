// SPDX-License-Identifier: Apache-2.0
#include "backends/text_facts.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kiln::test {
namespace {

TextFacts facts_of(const std::string& text) { return TextScanner().facts_of("h.h", text); }

std::string pasted(const std::vector<std::string>& texts) {
  MacroPieces pieces;
  for (const std::string& text : texts) pieces.add(facts_of(text));
  return std::string(pieces.time_macro());
}

TEST(TimeMacro, IsDetectedInAllSpellings) {
  EXPECT_EQ(time_macro("a = __TIME__"), "__TIME__");
  EXPECT_EQ(time_macro("a = __DA\\\nTE__"), "__DATE__");
  EXPECT_EQ(time_macro("a = __DA\?\?/\nTE__"), "__DATE__");
  EXPECT_EQ(time_macro("__TIMESTAMP__"), "__TIMESTAMP__");
  EXPECT_EQ(time_macro("TIME"), "");
  EXPECT_EQ(facts_of("a = __TI\\\nME__").time_macro, "__TIME__");
}

TEST(TimeMacro, IsDetectedIfPartsCanBePasted) {
  const std::string join = "#define JOIN(a, b) a##b\n";
  EXPECT_EQ(pasted({join + "JOIN(__TI, ME__)"}), "__TIME__");
  EXPECT_EQ(pasted({join, "#define LEFT __DA\n", "#define RIGHT TE__\n"}), "__DATE__");
  EXPECT_EQ(pasted({"#define M(x) __##x##__\nM(TIME)"}), "__TIME__");
  EXPECT_EQ(pasted({"%:define M(x) __%:%:x%:%:__\nM(TIMESTAMP)"}), "__TIMESTAMP__");
  EXPECT_EQ(pasted({join + "JOIN(__TI\\\nM, E__)"}), "__TIME__");
  EXPECT_EQ(pasted({join + "f('\"', __TI, ME__, '\"')"}), "__TIME__") << "these quotes do not start a string";
  EXPECT_EQ(pasted({join + "f(\"http://a\", __TI, ME__)"}), "__TIME__") << "no comment begins in a string";
  MacroPieces options;
  options.add("-DLEFT=__TI");
  options.add("-DRIGHT=ME__");
  options.note_paste();
  EXPECT_EQ(options.time_macro(), "__TIME__");
}

TEST(TimeMacro, IsNotDetectedInOrdinaryCode) {
  const std::string code =
      "#define CAT(a, b) a##b\n#define UNIQUE(x) CAT(x##_, __LINE__)\nenum Kind { TIMES, DATED };\n"
      "template <typename T, int I, int M, int E, int D, int A> __global__ void TIME_STEP(T* __restrict__ p) {}\n";
  EXPECT_EQ(pasted({code}), "");
  EXPECT_EQ(pasted({"// __ TIME\n/* __TI ME__ */ const char* s = \"__TI ME__\";\n#define A(x) x##_\n"}), "");
  EXPECT_EQ(pasted({"JOIN(__TI, ME__)"}), "") << "nothing pastes them";
  EXPECT_EQ(pasted({"#define JOIN(a, b) a##b\n__TI x__TI ME_"}), "");
}

TEST(TextFacts, DetectFileMacrosThatCanBePasted) {
  MacroPieces pieces;
  pieces.add("#define M(x) __##x##__\nconst char* f = M(FILE);");
  EXPECT_TRUE(pieces.names_file());
  MacroPieces none;
  none.add("#define M(x) a##x\nFILE* f = M(FILE);");
  EXPECT_FALSE(none.names_file());
}

TEST(TextFacts, ReportDependenciesOfText) {
  const Recipe recipe{Unit::cuda("k.cu", "").with_include_root("/opt/a"), Target::sm(80), {}, "/"};
  const TextScanner scanner(recipe);
  const TextFacts facts = scanner.facts_of("h.h", "#pragma once\n// NVIDIA\n#include \"/opt/a/b.h\"\n");
  EXPECT_TRUE(facts.has_once && facts.names_root);
  EXPECT_FALSE(facts.names_file || facts.names_reader || facts.names_program || facts.pastes || facts.is_vendors);
  const TextFacts named = scanner.facts_of("h.h", "#define W(x) #x##x __BASE_FILE__");
  EXPECT_TRUE(named.names_file && named.names_reader && named.names_program && named.pastes);
  EXPECT_FALSE(named.has_once || named.names_root);
}

}  // namespace
}  // namespace kiln::test
