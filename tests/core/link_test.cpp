// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "core/link_parts.hpp"
#include "core/recipe.hpp"
#include "core/unit_access.hpp"

namespace kiln::test {
namespace {

Unit one() {
  return Unit::cuda("one.cu", "source").with_entry("k").with_include_root("/a").with_include_root("/b", "/b/sentinel");
}
Unit two() {
  return Unit::cuda("two.cu", "other")
      .with_option("-a")
      .with_header("h", "1")
      .with_preamble("before")
      .with_include_root("/c");
}

Unit sample_link() {
  return Unit::link("whole", {LinkPart::unit(one()), LinkPart::ltoir("ir", Bytes::copy_of("bytes")),
                              LinkPart::unit(two()), LinkPart::ptx("text", Bytes())});
}

TEST(Link, KeepsPartOrderAndIncludeRoots) {
  const Unit link = sample_link();
  EXPECT_EQ(link.kind(), "link");
  const auto parts = decode_link_parts(link);
  ASSERT_TRUE(parts.has_value()) << parts.error().message;
  ASSERT_EQ(parts->size(), 4U);
  EXPECT_EQ(*(*parts)[0].unit, one());
  EXPECT_EQ((*parts)[1].form, Form::LtoIr);
  EXPECT_EQ((*parts)[1].name, "ir");
  EXPECT_EQ((*parts)[1].bytes, "bytes");
  EXPECT_FALSE((*parts)[1].unit);
  EXPECT_EQ(*(*parts)[2].unit, two());
  EXPECT_EQ((*parts)[3].form, Form::Ptx);
  EXPECT_EQ((*parts)[3].bytes, "");
  ASSERT_EQ(link.include_roots().size(), 3U);
  EXPECT_EQ(link.include_roots()[1].sentinel, "/b/sentinel");
  EXPECT_EQ(link.include_roots()[2].path, "/c");
}

TEST(Link, KeyCoversInputsAndOrder) {
  const auto link = [](std::vector<LinkPart> parts) { return Unit::link("whole", parts).key(); };
  const LinkPart a = LinkPart::ltoir("a", Bytes::copy_of("1"));
  const LinkPart b = LinkPart::ltoir("b", Bytes::copy_of("1"));
  const std::vector<UnitKey> keys = {
      link({}),
      link({a}),
      link({b}),
      link({a, b}),
      link({b, a}),
      link({a, a}),
      link({LinkPart::ptx("a", Bytes::copy_of("1"))}),
      link({LinkPart::cubin("a", Bytes::copy_of("1"))}),
      link({LinkPart::ltoir("a", Bytes::copy_of("2"))}),
      link({LinkPart::unit(one())}),
      link({LinkPart::unit(two())}),
      link({LinkPart::unit(one().with_option("-b"))}),
      link({LinkPart::unit(one().with_include_root("/d"))}),
      link({LinkPart::unit(one()), LinkPart::unit(two())}),
      link({LinkPart::unit(two()), LinkPart::unit(one())}),
      Unit::link("whole", {a}).with_option("-O3").key(),
      Unit::link("whole", {a}).with_entry("k").key(),
      Unit::link("other", {a}).key(),
  };
  EXPECT_EQ(std::set<UnitKey>(keys.begin(), keys.end()).size(), keys.size());
}

TEST(Link, KeyIgnoresRootPaths) {
  const auto link = [](const std::string& path) {
    return Unit::link("whole", {LinkPart::unit(Unit::cuda("a.cu", "source").with_include_root(path))});
  };
  EXPECT_EQ(link("/here").key(), link("/there").key());
  EXPECT_NE(link("/here"), link("/there"));
}

TEST(Link, RoundTripsThroughRecipe) {
  const Recipe recipe{sample_link().with_entry("k").with_option("-O3"), Target::sm(80), {}, "/work"};
  const auto back = decode_recipe(encode(recipe));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(UnitAccess::identity(back->unit), UnitAccess::identity(recipe.unit));
  EXPECT_EQ(*(*decode_link_parts(back->unit))[2].unit, two());
}

TEST(Link, RejectsTruncatedOrTrailingBytes) {
  const Unit good = sample_link();
  const std::string& source = good.source();
  const auto decode = [&](std::string text) {
    Unit unit = Unit::of_kind("link", "whole", std::move(text));
    for (const IncludeRoot& root : good.include_roots()) unit = unit.with_include_root(root.path, root.sentinel);
    return decode_link_parts(unit).has_value();
  };
  EXPECT_TRUE(decode(source));
  for (std::size_t length = 0; length < source.size(); ++length)
    ASSERT_FALSE(decode(source.substr(0, length))) << length;
  EXPECT_FALSE(decode(source + "x"));
  EXPECT_FALSE(decode("\x02" + source.substr(1)));
}

TEST(Link, RejectsUnsupportedMembers) {
  const Unit good = sample_link();
  for (const Unit& unit :
       {good.with_include_root("/d"), good.with_header("h", ""), good.with_preamble("p"), good.instance("k", "text"),
        Unit::link("whole", {}), Unit::cuda("k.cu", good.source()), Unit::of_kind("link", "whole", good.source())}) {
    const auto parts = decode_link_parts(unit);
    ASSERT_FALSE(parts.has_value());
    EXPECT_EQ(parts.error().code, Code::InvalidArgument);
    EXPECT_NE(parts.error().message.find(unit.name()), std::string::npos);
  }
}

}  // namespace
}  // namespace kiln::test
