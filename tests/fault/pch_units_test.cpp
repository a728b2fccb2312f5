// SPDX-License-Identifier: Apache-2.0
// Which units share precompiled headers, and that sharing never changes a result: each unit is compiled three times
// (without, creating, using) and once in this process.
#include <gtest/gtest.h>

#include "support/fixtures/pch_fixture.hpp"

namespace kiln::test {
namespace {

class PchUnits : public PchTest {
 protected:
  enum class Shared { Yes, No };

  // Expects the same result without, creating and using precompiled headers. Another unit creates them too, and this
  // unit uses those: they must not show anything of their creator.
  void expect_same_always(const Unit& unit, const Unit& sibling, Shared shared, const std::string& what) {
    SCOPED_TRACE(what);
    const std::size_t count = shared == Shared::Yes ? 1 : 0;
    auto own = process({.directory = directory_.path("own-" + std::to_string(++directories_))});
    const Seen plain(own->compile(unit));
    ASSERT_TRUE(plain.ok) << plain.log;
    EXPECT_EQ(own->kept(), 0U);
    const Seen made(own->compile(unit));
    EXPECT_EQ(own->kept(), count);
    const Seen used(own->compile(unit));
    EXPECT_EQ(own->used(), count);
    auto others = process({.directory = directory_.path("others-" + std::to_string(directories_))});
    others->expect_queued_similar(sibling);
    ASSERT_TRUE(others->compile(sibling).has_value());
    EXPECT_EQ(others->kept(), count);
    const Seen after_sibling(others->compile(unit));
    EXPECT_EQ(others->used(), count);
    EXPECT_EQ(own->dropped() + others->dropped(), 0U);
    expect_same(plain, made, "made");
    expect_same(plain, used, "used");
    expect_same(plain, after_sibling, "created by another unit and used");
    expect_same(plain, truth(*own, unit), "in this process", DependencySets::NotSeen);
  }
  void expect_same_always(const std::string& start, Shared shared) {
    expect_same_always(unit(1, start), unit(2, start), shared, start);
  }

  int directories_ = 0;
};

TEST_F(PchUnits, SharedForIncludeGuardsAndPragmaOnce) { expect_same_always("#include <wide.h>\n", Shared::Yes); }

TEST_F(PchUnits, SharedForHeaderIncludedTwice) {
  expect_same_always("#include <deep.h>\n#include <wide.h>\n#include <deep.h>\n", Shared::Yes);
}

TEST_F(PchUnits, LeadingIncludesAreSharedDespiteLaterIncludes) {
  expect_same_always("#include <wide.h>\nstruct S {};\n#include <later.h>\n#include <deep.h>\n", Shared::Yes);
}

TEST_F(PchUnits, SharedForLeadingComments) {
  expect_same_always("// what this is\n/* and\n   more */\n#include <wide.h>  // why\n", Shared::Yes);
}

TEST_F(PchUnits, SharedForMacrosBeforeIncludes) {
  expect_same_always("#define LIMIT 3\n#if LIMIT > 2\n#include <wide.h>\n#endif\n", Shared::Yes);
}

TEST_F(PchUnits, NotCreatedWithoutHeaders) {
  expect_same_always("static __device__ int wide(int x) { return x; }\n", Shared::No);
}

TEST_F(PchUnits, SharedForUnitsWithOnlyDirectives) {
  write("r2/kernel.h", "#include <wide.h>\nextern \"C\" __global__ void k(int* p) { *p = wide(*p); }\n");
  settle();
  const auto all = [&](const char* name) {
    return Unit::cuda(name, "#include <kernel.h>\n")
        .with_include_root(directory_.path("r1"))
        .with_include_root(directory_.path("r2"))
        .with_entry("k");
  };
  expect_same_always(all("one.cu"), all("two.cu"), Shared::Yes, "all directives");
}

TEST_F(PchUnits, SharedForEqualInMemoryHeaders) {
  const auto given = [&](int number, const std::string& content) {
    return unit(number, "#include \"given.h\"\n#include <wide.h>\n").with_header("given.h", content);
  };
  const std::string content = "#pragma once\n#define GIVEN 3\n#include <later.h>\n";
  expect_same_always(given(1, content), given(2, content), Shared::Yes, "from memory");
  auto one = process();
  EXPECT_NE(one->key_of(given(1, content)), one->key_of(given(1, content + "#define MORE\n")));
  EXPECT_NE(one->key_of(given(1, content)), one->key_of(unit(1, "#include \"given.h\"\n#include <wide.h>\n")));
}

TEST_F(PchUnits, SharedForIncludeOption) {
  write("r1/first.h", "#pragma once\n#define FIRST 9\ntemplate <class T> struct First { T t; };\n");
  settle();
  const auto with = [&](int number) { return unit(number).with_option("-include=first.h"); };
  expect_same_always(with(1), with(2), Shared::Yes, "-include");
}

TEST_F(PchUnits, SharedForNameExpressionsAndInternalNames) {
  write("r2/inner.h",
        "#pragma once\nnamespace { __device__ int hidden(int x) { static int calls = 0; return x + atomicAdd(&calls, "
        "1); } "
        "}\nstatic __device__ int table[4] = {1, 2, 3, 4};\nstatic __device__ int wide(int x) { return hidden(x) + "
        "table[x & 3]; }\n"
        "template <class T> __global__ void over(T* p) {\n"
        "  const auto twice = [](T x) { return x + x; };\n  *p = wide(static_cast<int>(twice(*p)));\n}\n");
  settle();
  const std::string start = "#include <inner.h>\n";
  expect_same_always(unit(1, start).with_entry("over<float>").with_entry("over<unsigned long>"),
                     unit(2, start).with_entry("over<int>"), Shared::Yes, "internal names");
}

TEST_F(PchUnits, QuotedIncludeResolvesInDirectoryOfUnit) {
  // A header in quotes is searched next to the program, in the directory that its name implies.
  write("here/a/beside.h", "#pragma once\n#include <wide.h>\n#define BESIDE 11\n");
  write("here/b/beside.h", "#pragma once\n#include <wide.h>\n#define BESIDE 22\n");
  settle();
  const auto beside = [&](const std::string& name) {
    return Unit::cuda(name,
                      "#include \"beside.h\"\nextern \"C\" __global__ void k(int* p) { *p = wide(*p) + BESIDE; }\n")
        .with_include_root(directory_.path("r2"))
        .with_include_root(directory_.path("here/a"))
        .with_entry("k");
  };
  for (const std::string& prefix : {std::string(), directory_.path("here/")}) {
    auto one = process({.directory = directory_.path("cache-" + std::to_string(++directories_))});
    one->expect_queued_similar(beside(prefix + "a/unit.cu"));
    ASSERT_TRUE(one->compile(beside(prefix + "a/unit.cu")).has_value());
    const Unit other = beside(prefix + "b/unit.cu");
    const Seen seen(one->compile(other));
    expect_same(seen, truth(*one, other), "of the other directory", DependencySets::NotSeen);
    auto bare = process({.directory = directory_.path("bare-" + std::to_string(directories_)), .headers = false});
    expect_same(seen, Seen(bare->compile(other)), "of the other directory, in a worker");
  }
}

TEST_F(PchUnits, SharedForHeadersWithFileMacro) {
  write("r2/names.h",
        "#pragma once\n#include <wide.h>\nstatic __device__ const char kFile[] = __FILE__;\n#define NAMED __FILE__\n"
        "static __device__ int name(int i) { return kFile[i]; }\n");
  settle();
  const auto names = [&](int number) {
    return unit(number,
                "#include <names.h>\nextern \"C\" __global__ void n(int* p) { p[0] = name(p[0]) + NAMED[p[1]]; }\n");
  };
  expect_same_always(names(1), names(2), Shared::Yes, "__FILE__");
}

TEST_F(PchUnits, NotCreatedForBaseFileMacro) {
  const std::string use =
      "static __device__ const char kBase[] = PROGRAM;\nstatic __device__ int at(int i) { return kBase[i]; }\n";
  write("r2/plain.h", "#pragma once\n#include <wide.h>\n" + use);
  write("r2/named.h", "#pragma once\n#include <wide.h>\n#define PROGRAM __BASE_\\\nFILE__\n" + use);
  settle();
  const auto names = [&](int number, const std::string& start) {
    return unit(number, start + "extern \"C\" __global__ void n(int* p) { p[0] = at(p[0]); }\n");
  };
  const std::string by_header = "#include <named.h>\n";
  expect_same_always(names(1, by_header), names(2, by_header), Shared::No, "a header names it");
  const std::string by_unit = "#define PROGRAM __BASE_FILE__\n#include <plain.h>\n";
  expect_same_always(names(1, by_unit), names(2, by_unit), Shared::No, "the unit names it");
  const auto by_option = [&](int number) {
    return names(number, "#include <plain.h>\n").with_option("-DPROGRAM=__BASE_FILE__");
  };
  expect_same_always(by_option(1), by_option(2), Shared::No, "an option names it");
}

TEST_F(PchUnits, HeaderWarningsAreRepeatedForEveryUnit) {
  write("r2/warns.h",
        "#pragma once\n#include <wide.h>\nstatic __device__ int odd(unsigned x) { int unused; if (x < 0) return 1; "
        "return 2; }\n"
        "#warning \"mind the header\"\n");
  settle();
  const std::string start = "#include <warns.h>\n";
  auto one = process();
  EXPECT_NE(Seen(one->compile(unit(3, start))).log, "") << "the header must cause a warning";
  expect_same_always(unit(1, start), unit(2, start), Shared::Yes, "warnings of the header");
  const std::string own = "__device__ int f(unsigned x) { int unused_too; return x < 0 ? 1 : 2; }\n";
  expect_same_always(unit(1, start + own), unit(2, start), Shared::Yes, "warnings of header and unit");
  expect_same_always(unit(1, start), unit(2, start + own), Shared::Yes, "warnings of header and sibling");
  auto next = process();
  const Unit both = unit(5, start + own);
  auto plain = process({.directory = directory_.path("plain"), .headers = false});
  const Seen truth(plain->compile(both));
  for (const char* directory : {"own-2", "own-3"}) {
    auto second = process({.directory = directory_.path(directory)});
    expect_same(truth, Seen(second->compile(both)), "in another process");
    EXPECT_EQ(second->used(), 1U);
  }
}

// NVRTC instantiates the templates that headers use earlier if it creates a precompiled header.
TEST_F(PchUnits, NotSharedIfTemplatesOfHeadersWarn) {
  write("r2/tmpl.h",
        "#pragma once\n#include <wide.h>\ntemplate <class T> __device__ T late() { int unused_t; return T(3); }\n"
        "__device__ inline int uses_late() { return late<int>(); }\n");
  settle();
  const auto warns = [&](int number) {
    return unit(number, "#include <tmpl.h>\n__device__ int f(int x) { int unused; return x; }\n");
  };
  auto plain = process({.directory = directory_.path("plain"), .headers = false});
  auto one = process();
  for (int i = 1; i <= 4; ++i)
    expect_same(Seen(plain->compile(warns(i))), Seen(one->compile(warns(i))), std::to_string(i));
  EXPECT_EQ(one->kept() + one->used(), 0U);
  // A unit without its own warnings can use the headers, and the first one with some finds that out.
  auto other = process({.directory = directory_.path("other")});
  const std::string start = "#include <tmpl.h>\n";
  other->expect_queued_similar(unit(1, start));
  expect_same(Seen(plain->compile(unit(1, start))), Seen(other->compile(unit(1, start))), "creating");
  EXPECT_EQ(other->kept(), 1U);
  expect_same(Seen(plain->compile(unit(2, start))), Seen(other->compile(unit(2, start))), "using");
  for (int i = 3; i <= 4; ++i)
    expect_same(Seen(plain->compile(warns(i))), Seen(other->compile(warns(i))), std::to_string(i));
  EXPECT_EQ(other->used(), 1U);
  EXPECT_EQ(other->dropped(), 1U);
  EXPECT_NE(other->dropped_reason().find("templates"), std::string::npos) << other->dropped_reason();
}

TEST_F(PchUnits, NotSharedIfWarningsNameTheUnit) {
  const std::string start = "#define TWO 1\n#define TWO 2\n#include <wide.h>\n";
  expect_same_always(start, Shared::No);
  auto one = process();
  for (int i = 1; i <= 5; ++i) ASSERT_TRUE(one->compile(unit(i, start)).has_value());
  const auto said = one->events.of(Event::Kind::PchUnavailable);
  ASSERT_EQ(said.size(), 2U) << "it is attempted twice";
  EXPECT_NE(said[0].message.find("name the unit"), std::string::npos) << said[0].message;
}

TEST_F(PchUnits, SharedIfWarningsContainTheNameAsAWord) {
  write("r2/warns.h", "#pragma once\n#include <wide.h>\n#warning see unit1.cu for the use\n");
  settle();
  expect_same_always("#include <warns.h>\n", Shared::Yes);
}

TEST_F(PchUnits, NotStoredForLongIfOrderOfWarningsIsUnknown) {
  write("r2/warns.h",
        "#pragma once\n#include <wide.h>\n__device__ inline int odd() { int unused_in_header; return 1; }\n");
  settle();
  const auto warns = [&](int number) {
    return unit(number, "#include <warns.h>\n__device__ int f(int x) { int unused; return x; }\n")
        .with_option("-diag-suppress=1105");
  };
  auto plain = process({.directory = directory_.path("plain"), .headers = false});
  auto one = process();
  for (int i = 1; i <= 3; ++i)
    expect_same(Seen(plain->compile(warns(i))), Seen(one->compile(warns(i))), std::to_string(i));
  EXPECT_EQ(one->kept() + one->used(), 0U);
  auto next = process();
  for (int i = 1; i <= 2; ++i) ASSERT_TRUE(next->compile(warns(i)).has_value());
  const auto said = next->events.of(Event::Kind::PchUnavailable);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].message.find("#warning"), std::string::npos) << said[0].message;
  EXPECT_NE(said[0].message.find("again a day after"), std::string::npos) << said[0].message;
}

// The known exception (docs/internals/decisions/0006.md): NVRTC instantiates the templates that headers use
// when it writes a precompiled header, otherwise at the end of the unit. This fails if NVRTC changes.
TEST_F(PchUnits, LaterOverloadIsNotFoundByTemplatesThatHeadersUse) {
  write("r2/overload.h",
        "#pragma once\nstruct A {};\n__device__ inline int foo(A, long) { return 1; }\n"
        "template <class T> __device__ int t(T x) { return foo(x, 0); }\n"
        "__device__ inline int f() { return t(A{}); }\n");
  settle();
  const auto adds = [&](const char* name) {
    return Unit::cuda(name,
                      "#include <overload.h>\n__device__ inline int foo(A, int) { return 222; }\n"
                      "extern \"C\" __global__ void k(int* o) { *o = f(); }\n")
        .with_include_root(directory_.path("r2"))
        .with_entry("k");
  };
  const auto ptx = Target::parse("compute_80").value();
  auto plain = process({.directory = directory_.path("plain"), .headers = false});
  const Seen without(plain->compile(adds("one.cu"), ptx));
  ASSERT_TRUE(without.ok) << without.log;
  EXPECT_NE(without.bytes.find("222"), std::string::npos);
  auto one = process();
  one->expect_queued_similar(adds("one.cu"), ptx);
  ASSERT_TRUE(one->compile(adds("one.cu"), ptx).has_value());
  const Seen used(one->compile(adds("two.cu"), ptx));
  EXPECT_EQ(one->used(), 1U);
  ASSERT_TRUE(used.ok) << used.log;
  EXPECT_EQ(used.bytes.find("222"), std::string::npos);
}

TEST_F(PchUnits, SharedForUnitsWithOwnWarnings) {
  const auto warns = [&](int number) {
    return unit(number,
                "#include <wide.h>\n__device__ int f(unsigned x) { int unused; if (x < 0) return 1; return 2; }\n");
  };
  auto one = process();
  EXPECT_NE(Seen(one->compile(warns(3))).log, "") << "the unit must cause a warning";
  expect_same_always(warns(1), warns(2), Shared::Yes, "warnings");
}

TEST_F(PchUnits, UnusedFunctionWarningsAreReported) {
  write("r2/helper.h", "#pragma once\n#include <wide.h>\nstatic __device__ int helper(int x) { return x; }\n");
  settle();
  const Unit user = unit(2, "#include <helper.h>\n__device__ int f(int x) { return helper(x); }\n");
  expect_same_always(unit(1, "#include <helper.h>\n__device__ int f(int x) { return x; }\n"), user, Shared::Yes,
                     "unused");
}

TEST_F(PchUnits, WarningPragmasStayEffective) {
  write("r2/silent.h", "#pragma once\n#pragma nv_diag_suppress 177\n#include <wide.h>\n");
  settle();
  const auto silent = [&](int number) {
    return unit(number, "#include <silent.h>\n__device__ int f(int x) { int unused; return x; }\n");
  };
  expect_same_always(silent(1), silent(2), Shared::Yes, "silenced");
}

TEST_F(PchUnits, NotCreatedWithDebugInformation) {
  for (const char* option : {"-lineinfo", "--generate-line-info", "-G"}) {
    expect_same_always(unit(1).with_option(option), unit(2).with_option(option), Shared::No, option);
  }
}

TEST_F(PchUnits, NotCreatedForTimeMacro) {
  write("r2/time.h", "#pragma once\n#include <wide.h>\n#define NOW __TIME__\n");
  settle();
  expect_same_always("#include <time.h>\n", Shared::No);
  auto one = process();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(one->compile(unit(i, "#include <time.h>\n")).has_value());
  EXPECT_EQ(one->kept() + one->used(), 0U);
  EXPECT_EQ(one->events.count(Event::Kind::PchUnavailable), 1U) << "it is attempted only once";
  // Another process does not try it and reports the reason once.
  auto next = process();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(next->compile(unit(i, "#include <time.h>\n")).has_value());
  const auto said = next->events.of(Event::Kind::PchUnavailable);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].message.find("an attempt on this host failed"), std::string::npos) << said[0].message;
  EXPECT_NE(said[0].message.find("__TIME__"), std::string::npos) << said[0].message;
}

TEST_F(PchUnits, CompileErrorsAreEqualAndCreateNone) {
  auto one = process();
  const Unit wrong = unit(1, "#include <wide.h>\nint x = undeclared;\n");
  const Seen first(one->compile(wrong));
  EXPECT_FALSE(first.ok);
  for (int i = 0; i < 2; ++i) expect_same(first, Seen(one->compile(wrong)), "again");
  EXPECT_EQ(one->kept(), 0U);
  ASSERT_TRUE(one->compile(unit(2)).has_value());
  expect_same(first, Seen(one->compile(wrong)), "with the file of another unit");
  expect_same(first, truth(*one, wrong), "in this process", DependencySets::NotSeen);
}

TEST_F(PchUnits, PtxAndOtherArchitecturesUseSeparateHeaders) {
  auto one = process();
  const auto ptx = Target::parse("compute_80").value();
  EXPECT_NE(one->key_of(unit(1)), one->key_of(unit(1), ptx));
  EXPECT_NE(one->key_of(unit(1)), one->key_of(unit(1), Target::sm(90)));
  EXPECT_EQ(one->key_of(unit(1)), one->key_of(unit(2)));
  std::size_t forms = 0;
  for (const char* form : {"compute_80", "lto_80"}) {
    const auto target = Target::parse(form).value();
    const Seen plain(one->compile(unit(1), target));
    const Seen made(one->compile(unit(1), target));
    const Seen used(one->compile(unit(1), target));
    EXPECT_EQ(one->kept(), ++forms);
    EXPECT_EQ(one->used(), forms);
    expect_same(plain, made, std::string(form) + ", made");
    expect_same(plain, used, std::string(form) + ", used");
  }
}

}  // namespace
}  // namespace kiln::test
