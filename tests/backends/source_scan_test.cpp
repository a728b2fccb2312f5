// SPDX-License-Identifier: Apache-2.0
#include "backends/source_scan.hpp"

#include <gtest/gtest.h>

#include <string>

namespace kiln::test {
namespace {

TEST(SourceText, DistinguishesProgramNameFromFileName) {
  EXPECT_TRUE(may_expand_base_file("const char* a = __BASE_FILE__;"));
  EXPECT_TRUE(may_expand_base_file("const char* a = __BASE_\\\nFILE__;"));
  EXPECT_FALSE(may_expand_base_file("const char* a = __FILE__;"));
}

TEST(SourceText, DetectsAllSpellingsOfInclude) {
  EXPECT_TRUE(may_include("#include <a.h>"));
  EXPECT_TRUE(may_include("#inc\\\nlude <a.h>"));
  EXPECT_TRUE(may_include("#inc\\\r\nlude <a.h>"));
  EXPECT_TRUE(may_include("%:include <a.h>"));
  EXPECT_TRUE(may_include("#if __has_embed(\"x\")"));
  EXPECT_TRUE(may_include("\?\?/\n"));
  EXPECT_FALSE(may_include("__global__ void k(int* p) { *p = 1; }"));
}

TEST(SourceText, DetectsIncludesWhoseNamesMacrosMake) {
  for (const char* text :
       {"#include NAME", "# \tinclude NAME", "#include_next NAME", "#include/**/\"a.h\"", "%:include NAME",
        "\?\?=include NAME", "#/* */include NAME", "#inc\\\nlude NAME", "#include \\\n NAME", "#import NAME",
        "#embed NAME", "#if __has_include(NAME)", "#if __has_include_next( NAME)", "#if __has_include /**/ (NAME)",
        "#if __has_embed(NAME)", "\?\?/\n"}) {
    EXPECT_TRUE(may_compute_include(text)) << text;
  }
  for (const char* text : {"#include <a.h>\n#include \"b.h\"", "#include\t<a.h>", "#ifdef __has_include", "include",
                           "#if defined(__has_include) && __has_include(<a.h>)", "#if __has_include( \"a.h\")",
                           "// the files of /usr/include belong here", "int include = 1;", "#pragma include_all x"}) {
    EXPECT_FALSE(may_compute_include(text)) << text;
  }
}

TEST(SourceText, DetectsAllSpellingsOfFileMacros) {
  EXPECT_TRUE(may_expand_file_macro("assert(x)"));
  EXPECT_TRUE(may_expand_file_macro("static_assert(x); assert(x)"));
  EXPECT_FALSE(may_expand_file_macro("static_assert(x); _Static_assert(x)"));
  EXPECT_FALSE(may_expand_includer_name("assert(x)"));
  EXPECT_TRUE(may_expand_includer_name("#define WHERE __FI\\\nLE__"));
}

// Expects that the leading directives of `kept` and `rest` together are `kept`.
void expect_kept(const std::string& kept, const std::string& rest) {
  EXPECT_EQ(leading_directives(kept + rest), kept) << kept << rest;
}
void expect_nothing(const std::string& source) { EXPECT_EQ(leading_directives(source), "") << source; }

TEST(LeadingDirectives, EndAfterLineBreakOfLastDirective) {
  expect_kept("#include <a.h>\n", "int x;\n");
  expect_kept("#include <a.h>\n", "\n\n  // about x\n/* more */ int x;\n");
  expect_kept("// license\n\n#include <a.h>\n\n#define N 3\n", "\nint x;\n#include <b.h>\n");
  expect_kept("#include \"a.h\"\n", "int x;");
  expect_kept("#include <a.h>\n#\n", "x");
  expect_kept("  #  include <a.h>\n\t#define A\n", "x");
  expect_kept("#define HEADER <a.h>\n#include HEADER\n", "x");
  expect_kept("#include_next <a.h>\n", "x");
  expect_kept("#include<a.h>\n", ";");
}

TEST(LeadingDirectives, CoverSourceOfOnlyDirectives) {
  expect_kept("#include <a.h>\n", "");
  expect_kept("#include <a.h>", "");
  expect_kept("#include <a.h>\n#define N 1", "");
  expect_kept("#include <a.h>\n", "\n  /* the end */ ");
  expect_kept("#include <a.h>\n", "// the end");
}

TEST(LeadingDirectives, ExcludeTrailingPragmas) {
  expect_kept("#include <a.h>\n", "#pragma nv_exec_check_disable\ntemplate <class T> void f(T);");
  expect_kept("#include <a.h>\n", "#pragma pack(push, 1)\n#pragma unroll\nstruct S {};");
  expect_kept("#pragma once\n#include <a.h>\n#pragma pack(1)\n#include <b.h>\n", "x");
  expect_kept("#include <a.h>\n#define U _Pragma(\"unroll\")\n", "x");
  expect_nothing("#pragma once\nint x;");
}

TEST(LeadingDirectives, ContinueOverJoinedLines) {
  expect_kept("#inc\\\nlude <a.h>\n", "x");
  expect_kept("#include <a.h>\n#define F(x) \\\n  x + \\\n  1\n", "int y;");
  expect_kept("#include <a.h>\r\n#define F(x) \\\r\n  x\r\n", "int y;\r\n");
  expect_kept("#include <a.h>\n/\\\n/ comment \\\n still\n#define A\n", "x");
  expect_kept("#include <a.h>\n/\\\n* comment *\\\n/ #define A\n", "x");
  expect_kept("\\\n#include <a.h>\n", "x");
  expect_kept("#include <a.h> // joined \\\n int not_code;\n", "int code;");
}

TEST(LeadingDirectives, AllowCommentsInAndAroundThem) {
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

TEST(LeadingDirectives, RecognizeLiterals) {
  expect_kept("#include <a.h>\n#define A \"// \\\" no comment\"\n", "x");
  expect_kept("#include <a.h>\n#define A '\"'\n#define B \"'\"\n", "x");
  expect_kept("#include <a.h>\n#define A '\\''\n#define B \"\\\\\"\n", "x");
  expect_kept("#include <a.h>\n#error don't\n", "x");
  expect_kept("#include <a.h>\n#define A 1'000'000\n#define B 1'0 // it's\n", "x");
  expect_nothing("#include <a//b.h>\nx");
}

TEST(LeadingDirectives, RequireCompleteConditions) {
  expect_kept("#if A\n#include <a.h>\n#elif B\n#include <b.h>\n#else\n#endif\n", "x");
  expect_kept("#ifndef A\n#define A\n#ifdef B\n#endif\n#endif\n#include <a.h>\n", "x");
  expect_nothing("#include <a.h>\n#if A\nint x;\n#endif\n");
  expect_nothing("#ifndef GUARD\n#define GUARD\n#include <a.h>\nint x;\n#endif\n");
  expect_nothing("#include <a.h>\n#if A\n");
  expect_nothing("#include <a.h>\n#endif\nint x;");
  expect_nothing("#endif\n#include <a.h>\n#if A\n");
}

TEST(LeadingDirectives, AreEmptyWithoutIncludes) {
  expect_nothing("");
  expect_nothing("\n");
  expect_nothing("int x;\n#include <a.h>\n");
  expect_nothing("#define N 3\nint x;\n#include <a.h>\n");
  expect_nothing("// #include <a.h>\nint x;");
  expect_nothing("/* #include <a.h>\n*/ int x;");
  expect_nothing("#pragma once // #include\nint x;");
  expect_nothing("#define include\nint x;");
}

TEST(LeadingDirectives, AreEmptyIfAmbiguous) {
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

TEST(LeadingDirectives, IgnoreTextAfterFirstCode) {
  expect_kept("#include <a.h>\n", "auto s = R\"(\n#include <b.h>\n)\"; _Pragma(\"once\") // \?\?/ %: \\ \n/* no end");
  expect_kept("#include <a.h>\n", "_Pragmatic x;");
  expect_kept("#include <a.h>\n", "% x;");
}

TEST(LeadingDirectives, AreIdempotent) {
  const std::string source = "// a\n#include <a.h>\n#define B \\\n 1\n/* c */\nint x;\n";
  const std::string_view start = leading_directives(source);
  ASSERT_FALSE(start.empty());
  EXPECT_EQ(leading_directives(start), start);
  EXPECT_EQ(start.data(), source.data());
}

}  // namespace
}  // namespace kiln::test
