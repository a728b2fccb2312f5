#include "compile/source_text.hpp"

#include <gtest/gtest.h>

#include <string>

namespace kiln::test {
namespace {

TEST(SourceText, TheProgramsNameIsToldFromTheFilesOwn) {
  EXPECT_TRUE(could_name_its_program("const char* a = __BASE_FILE__;"));
  EXPECT_TRUE(could_name_its_program("const char* a = __BASE_\\\nFILE__;"));
  EXPECT_FALSE(could_name_its_program("const char* a = __FILE__;"));
}

TEST(SourceText, AnIncludeIsSeenHoweverItIsWritten) {
  EXPECT_TRUE(could_include("#include <a.h>"));
  EXPECT_TRUE(could_include("#inc\\\nlude <a.h>"));
  EXPECT_TRUE(could_include("#inc\\\r\nlude <a.h>"));
  EXPECT_TRUE(could_include("%:include <a.h>"));
  EXPECT_TRUE(could_include("#if __has_embed(\"x\")"));
  EXPECT_TRUE(could_include("\?\?/\n"));
  EXPECT_FALSE(could_include("__global__ void k(int* p) { *p = 1; }"));
}

TEST(SourceText, TimesAndFileNamesAreSeenHoweverTheyAreWritten) {
  EXPECT_EQ(time_macro("a = __TIME__"), "__TIME__");
  EXPECT_EQ(time_macro("a = __DA\\\nTE__"), "__DATE__");
  EXPECT_EQ(time_macro("__TIMESTAMP__"), "__TIMESTAMP__");
  EXPECT_EQ(time_macro("TIME"), "");
  EXPECT_TRUE(could_name_its_file("assert(x)"));
  EXPECT_FALSE(could_name_its_reader("assert(x)"));
  EXPECT_TRUE(could_name_its_reader("#define WHERE __FI\\\nLE__"));
}

// The start of `kept` and `rest` together must be `kept`.
void expect_kept(const std::string& kept, const std::string& rest) {
  EXPECT_EQ(leading_directives(kept + rest), kept) << kept << rest;
}
void expect_nothing(const std::string& source) { EXPECT_EQ(leading_directives(source), "") << source; }

TEST(LeadingDirectives, EndBehindTheLastDirectivesLineBreak) {
  expect_kept("#include <a.h>\n", "int x;\n");
  expect_kept("#include <a.h>\n", "\n\n  // about x\n/* more */ int x;\n");
  expect_kept("// licence\n\n#include <a.h>\n\n#define N 3\n", "\nint x;\n#include <b.h>\n");
  expect_kept("#include \"a.h\"\n", "int x;");
  expect_kept("#include <a.h>\n#\n", "x");
  expect_kept("  #  include <a.h>\n\t#define A\n", "x");
  expect_kept("#define HEADER <a.h>\n#include HEADER\n", "x");
  expect_kept("#include_next <a.h>\n", "x");
  expect_kept("#include<a.h>\n", ";");
}

TEST(LeadingDirectives, AreTheWholeOfASourceThatHasNothingElse) {
  expect_kept("#include <a.h>\n", "");
  expect_kept("#include <a.h>", "");
  expect_kept("#include <a.h>\n#define N 1", "");
  expect_kept("#include <a.h>\n", "\n  /* the end */ ");
  expect_kept("#include <a.h>\n", "// the end");
}

TEST(LeadingDirectives, LeavePragmasToTheCodeBehindThem) {
  expect_kept("#include <a.h>\n", "#pragma nv_exec_check_disable\ntemplate <class T> void f(T);");
  expect_kept("#include <a.h>\n", "#pragma pack(push, 1)\n#pragma unroll\nstruct S {};");
  expect_kept("#pragma once\n#include <a.h>\n#pragma pack(1)\n#include <b.h>\n", "x");
  expect_kept("#include <a.h>\n#define U _Pragma(\"unroll\")\n", "x");
  expect_nothing("#pragma once\nint x;");
}

TEST(LeadingDirectives, GoOnOverJoinedLines) {
  expect_kept("#inc\\\nlude <a.h>\n", "x");
  expect_kept("#include <a.h>\n#define F(x) \\\n  x + \\\n  1\n", "int y;");
  expect_kept("#include <a.h>\r\n#define F(x) \\\r\n  x\r\n", "int y;\r\n");
  expect_kept("#include <a.h>\n/\\\n/ comment \\\n still\n#define A\n", "x");
  expect_kept("#include <a.h>\n/\\\n* comment *\\\n/ #define A\n", "x");
  expect_kept("\\\n#include <a.h>\n", "x");
  expect_kept("#include <a.h> // joined \\\n int not_code;\n", "int code;");
}

TEST(LeadingDirectives, HaveCommentsInAndAroundThem) {
  expect_kept("/* a */ # /* b */ include /* c */ <a.h> /* d */\n", "x");
  expect_kept("/* two\n lines */ #include <a.h>\n", "x");
  expect_kept("#include <a.h> /* goes\n on */\n", "x");
  expect_kept("#include <a.h> /* goes\n on */ int still_of_the_directive;\n", "int y;");
  expect_kept("#include <a.h> // don't \"\n#define A 'x' // it's\n", "x");
  expect_kept("#include <a.h>\n/**/#define A\n/***/#define B\n/*/*/#define C\n", "x");
  expect_kept("#include <a.h>\n#if A < 3 /* old\n ones */\n#endif\n", "x");
  expect_kept("#include <a.h>\n", "/* * / */ int x; # define N");
  expect_kept("#include <a.h>\n", "/ 2");
}

TEST(LeadingDirectives, TakeLiteralsForWhatTheyAre) {
  expect_kept("#include <a.h>\n#define A \"// \\\" no comment\"\n", "x");
  expect_kept("#include <a.h>\n#define A '\"'\n#define B \"'\"\n", "x");
  expect_kept("#include <a.h>\n#define A '\\''\n#define B \"\\\\\"\n", "x");
  expect_kept("#include <a.h>\n#error don't\n", "x");
  expect_kept("#include <a.h>\n#define A 1'000'000\n#define B 1'0 // it's\n", "x");
  expect_nothing("#include <a//b.h>\nx");
}

TEST(LeadingDirectives, HaveWholeConditionsOnly) {
  expect_kept("#if A\n#include <a.h>\n#elif B\n#include <b.h>\n#else\n#endif\n", "x");
  expect_kept("#ifndef A\n#define A\n#ifdef B\n#endif\n#endif\n#include <a.h>\n", "x");
  expect_nothing("#include <a.h>\n#if A\nint x;\n#endif\n");
  expect_nothing("#ifndef GUARD\n#define GUARD\n#include <a.h>\nint x;\n#endif\n");
  expect_nothing("#include <a.h>\n#if A\n");
  expect_nothing("#include <a.h>\n#endif\nint x;");
  expect_nothing("#endif\n#include <a.h>\n#if A\n");
}

TEST(LeadingDirectives, AreNothingWhereNothingIsIncluded) {
  expect_nothing("");
  expect_nothing("\n");
  expect_nothing("int x;\n#include <a.h>\n");
  expect_nothing("#define N 3\nint x;\n#include <a.h>\n");
  expect_nothing("// #include <a.h>\nint x;");
  expect_nothing("/* #include <a.h>\n*/ int x;");
  expect_nothing("#pragma once // #include\nint x;");
  expect_nothing("#define include\nint x;");
}

TEST(LeadingDirectives, AreNothingWhereACompilerMaySeeItOtherwise) {
  expect_nothing("\?\?=include <a.h>\n#include <b.h>\nx");
  expect_nothing("#include <a.h>\n\?\?=include <b.h>\nx");
  expect_nothing("#include <a.h>\n// what\?\?/\n#define A\nx");
  expect_nothing("#include <a.h>\n%:include <b.h>\nx");
  expect_nothing("#include <a.h>\n%\\\n:include <b.h>\nx");
  expect_nothing("#include <a.h>\n_Pragma(\"once\")\nx");
  expect_nothing("#include <a.h>\n_Pra\\\ngma(\"once\")\nx");
  expect_nothing("#include <a.h>\n#define S R\"(\n)\"\nx");
  expect_nothing("#include <a.h>\n#define S u8R\"(\n)\"\nx");
  expect_nothing("#include <a.h>\n#pragma hdrstop\n#include <b.h>\nx");
  expect_nothing("#include <a.h>\n#line 5\nx");
  expect_nothing("#include <a.h>\n# 5 \"b.h\"\nx");
  expect_nothing("#pragma no_pch\n#include <b.h>\nx");
  expect_nothing("#include <a.h>\n#define A \\ \n 1\nx");
  expect_nothing("#include <a.h>\n#define A \\");
  expect_nothing("#include <a.h>\r#define A\rx");
  expect_nothing("#include <a.h>\n/* without end");
  expect_nothing("#include <a/*b.h>\n#define A */\nx");
  expect_nothing("#include <a.h>\n#define N 1'000 /* it's\n one */\nx");
  expect_nothing("#include <a.h>\n#define A \"/*\"\nx");
  expect_nothing(std::string("#include <a.h>\n#define A\0\nx", 28));
}

TEST(LeadingDirectives, MindOnlyWhatIsBeforeTheFirstCode) {
  expect_kept("#include <a.h>\n", "auto s = R\"(\n#include <b.h>\n)\"; _Pragma(\"once\") // \?\?/ %: \\ \n/* no end");
  expect_kept("#include <a.h>\n", "_Pragmatic x;");
  expect_kept("#include <a.h>\n", "% x;");
}

TEST(LeadingDirectives, AreTheirOwnLeadingDirectives) {
  const std::string source = "// a\n#include <a.h>\n#define B \\\n 1\n/* c */\nint x;\n";
  const std::string_view start = leading_directives(source);
  ASSERT_FALSE(start.empty());
  EXPECT_EQ(leading_directives(start), start);
  EXPECT_EQ(start.data(), source.data());
}

}  // namespace
}  // namespace kiln::test
