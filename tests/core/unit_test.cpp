// SPDX-License-Identifier: Apache-2.0
#include <kiln/unit.hpp>

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "core/unit_access.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

Unit base() { return Unit::cuda("k.cu", "source").with_entry("k"); }

TEST(Unit, KeyCoversEveryInput) {
  const std::vector<Unit> units = {
      base(),
      Unit::opencl("k.cu", "source").with_entry("k"),
      Unit::cuda("other.cu", "source").with_entry("k"),
      Unit::cuda("k.cu", "Source").with_entry("k"),
      Unit::cuda("k.cu", "source"),
      base().with_entry("l"),
      base().with_option("-a"),
      base().with_option("-a").with_option("-b"),
      base().with_option("-b").with_option("-a"),
      base().with_option("-a -b"),
      base().with_option("-a").with_entry("l"),
      base().with_include_root("/x"),
      base().with_include_root("/x").with_include_root("/y"),
      base().with_include_root("/x", "/x/sentinel"),
      base().with_header("h", "1"),
      base().with_header("h", "2"),
      base().with_header("i", "1"),
      base().with_preamble("p"),
      base().with_preamble(""),
      Unit::cuda("k.cu", "psource").with_entry("k"),
  };
  std::set<UnitKey> keys;
  for (const Unit& unit : units) keys.insert(unit.key());
  EXPECT_EQ(keys.size(), units.size());
}

TEST(Unit, KeyIgnoresIncludeRootPaths) {
  EXPECT_EQ(base().with_include_root("/a").key(), base().with_include_root("/b").key());
  EXPECT_EQ(base().with_include_root("/a", "/a/sentinel").key(), base().with_include_root("/b", "/b/sentinel").key());
}

TEST(Unit, OfFileHasItsBaseNameAndItsDirectoryForQuotedIncludes) {
  const TemporaryDirectory directory;
  const std::string plain = "extern \"C\" __global__ void k() {}\n";
  write_text(directory.path("plain.cu"), plain);
  write_text(directory.path("quoted.cu"), "# include \"h.h\"\n");
  write_text(directory.path("quoted.cl"), "#include \"h.h\"\n");
  EXPECT_EQ(Unit::cuda_file(directory.path("plain.cu")).value(), Unit::cuda("plain.cu", plain));
  EXPECT_EQ(Unit::cuda_file(directory.path("quoted.cu")).value(),
            Unit::cuda("quoted.cu", "# include \"h.h\"\n").with_include_root(directory.path()));
  EXPECT_EQ(Unit::opencl_file(directory.path("quoted.cl")).value(), Unit::opencl("quoted.cl", "#include \"h.h\"\n"));
  const Result<Unit> missing = Unit::cuda_file(directory.path("missing.cu"));
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, Code::Io);
  EXPECT_NE(missing.error().message.find("missing.cu"), std::string::npos) << missing.error().message;
}

TEST(Unit, IdentityCoversIncludeRootPaths) {
  const Unit unit = Unit::cuda("a", "source");
  EXPECT_EQ(UnitAccess::identity_if_computed(unit), nullptr);
  EXPECT_EQ(UnitAccess::identity(unit), unit.key().digest);
  EXPECT_NE(UnitAccess::identity_if_computed(unit), nullptr);
  EXPECT_EQ(unit, Unit::cuda("a", "source"));
  EXPECT_NE(unit.with_include_root("/here"), unit.with_include_root("/there"));
  EXPECT_NE(unit.with_include_root("/here"), unit.with_include_root("/here", "/here/sentinel"));
}

TEST(Unit, DisplayNameIncludesEntryOfInstance) {
  EXPECT_EQ(Unit::cuda("a", "source").with_entry("f").label(), "a");
  EXPECT_EQ(Unit::cuda("a", "").with_preamble("common").instance("f", "source").label(), "a:f");
}

TEST(Unit, KeyIgnoresConstructionOrder) {
  EXPECT_EQ(base().with_option("-a").with_option("-b").key(), base().with_options({"-a", "-b"}).key());
  EXPECT_EQ(base().with_option("-a").with_entry("l").key(), base().with_entry("l").with_option("-a").key());
  EXPECT_EQ(Unit::cuda("k.cu", "").with_preamble("p").instance("k", "source").key(), base().with_preamble("p").key());
}

TEST(Unit, DerivedUnitLeavesOriginalUnchanged) {
  const Unit unit = base();
  const UnitKey key = unit.key();
  const Unit other = unit.with_option("-a").with_entry("l");
  EXPECT_EQ(unit.key(), key);
  EXPECT_TRUE(unit.options().empty());
  EXPECT_EQ(unit.entries(), std::vector<std::string>{"k"});
  EXPECT_EQ(other.entries(), (std::vector<std::string>{"k", "l"}));
}

TEST(Unit, InstancesSharePreamble) {
  const Unit family = Unit::cuda("family.cu", "").with_preamble("#define A 1\n");
  const Unit one = family.instance("one", "void one();");
  const Unit two = family.instance("two", "void two();");
  EXPECT_EQ(&one.preamble(), &two.preamble());
  EXPECT_EQ(one.full_source(), "#define A 1\nvoid one();");
  EXPECT_EQ(two.entries(), std::vector<std::string>{"two"});
  EXPECT_NE(one.key(), two.key());
}

TEST(Unit, KeyIsThreadSafe) {
  const Unit unit = base().with_preamble(std::string(100'000, 'p'));
  std::vector<UnitKey> keys(8);
  std::vector<std::thread> threads;
  for (UnitKey& key : keys) threads.emplace_back([&unit, &key] { key = unit.key(); });
  for (std::thread& thread : threads) thread.join();
  for (const UnitKey& key : keys) EXPECT_EQ(key, keys[0]);
}

}  // namespace
}  // namespace kiln::test
