#include <kiln/unit.hpp>

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace kiln::test {
namespace {

Unit base() { return Unit::cuda("k.cu", "source").entry("k"); }

TEST(Unit, KeyCoversEveryInput) {
  const std::vector<Unit> units = {
      base(),
      Unit::opencl("k.cu", "source").entry("k"),
      Unit::cuda("other.cu", "source").entry("k"),
      Unit::cuda("k.cu", "Source").entry("k"),
      Unit::cuda("k.cu", "source"),
      base().entry("l"),
      base().option("-a"),
      base().option("-a").option("-b"),
      base().option("-b").option("-a"),
      base().option("-a -b"),
      base().option("-a").entry("l"),
      base().include_root("/x"),
      base().include_root("/x").include_root("/y"),
      base().include_root("/x", "/x/sentinel"),
      base().header("h", "1"),
      base().header("h", "2"),
      base().header("i", "1"),
      base().preamble("p"),
      base().preamble(""),
      Unit::cuda("k.cu", "psource").entry("k"),
  };
  std::set<UnitKey> keys;
  for (const Unit& unit : units) keys.insert(unit.key());
  EXPECT_EQ(keys.size(), units.size());
}

TEST(Unit, KeyIgnoresIncludeRootPaths) {
  EXPECT_EQ(base().include_root("/a").key(), base().include_root("/b").key());
  EXPECT_EQ(base().include_root("/a", "/a/sentinel").key(), base().include_root("/b", "/b/sentinel").key());
}

TEST(Unit, IdentityCoversIncludeRootPaths) {
  const Unit unit = Unit::cuda("a", "source");
  EXPECT_EQ(unit.identity_if_computed(), nullptr);
  EXPECT_EQ(unit.identity(), unit.key().digest);
  EXPECT_NE(unit.identity_if_computed(), nullptr);
  EXPECT_EQ(unit.identity(), Unit::cuda("a", "source").identity());
  EXPECT_NE(unit.include_root("/here").identity(), unit.include_root("/there").identity());
  EXPECT_NE(unit.include_root("/here").identity(), unit.include_root("/here", "/here/sentinel").identity());
}

TEST(Unit, DisplayNameIncludesEntryOfInstance) {
  EXPECT_EQ(Unit::cuda("a", "source").entry("f").label(), "a");
  EXPECT_EQ(Unit::cuda("a", "").preamble("common").instance("f", "source").label(), "a:f");
}

TEST(Unit, KeyIgnoresConstructionOrder) {
  EXPECT_EQ(base().option("-a").option("-b").key(), base().options({"-a", "-b"}).key());
  EXPECT_EQ(base().option("-a").entry("l").key(), base().entry("l").option("-a").key());
  EXPECT_EQ(Unit::cuda("k.cu", "").preamble("p").instance("k", "source").key(), base().preamble("p").key());
}

TEST(Unit, DerivedUnitLeavesOriginalUnchanged) {
  const Unit unit = base();
  const UnitKey key = unit.key();
  const Unit other = unit.option("-a").entry("l");
  EXPECT_EQ(unit.key(), key);
  EXPECT_TRUE(unit.options().empty());
  EXPECT_EQ(unit.entries(), std::vector<std::string>{"k"});
  EXPECT_EQ(other.entries(), (std::vector<std::string>{"k", "l"}));
}

TEST(Unit, InstancesSharePreamble) {
  const Unit family = Unit::cuda("family.cu", "").preamble("#define A 1\n");
  const Unit one = family.instance("one", "void one();");
  const Unit two = family.instance("two", "void two();");
  EXPECT_EQ(&one.preamble(), &two.preamble());
  EXPECT_EQ(one.full_source(), "#define A 1\nvoid one();");
  EXPECT_EQ(two.entries(), std::vector<std::string>{"two"});
  EXPECT_NE(one.key(), two.key());
}

TEST(Unit, KeyIsThreadSafe) {
  const Unit unit = base().preamble(std::string(100'000, 'p'));
  std::vector<UnitKey> keys(8);
  std::vector<std::thread> threads;
  for (UnitKey& key : keys) threads.emplace_back([&unit, &key] { key = unit.key(); });
  for (std::thread& thread : threads) thread.join();
  for (const UnitKey& key : keys) EXPECT_EQ(key, keys[0]);
}

}  // namespace
}  // namespace kiln::test
