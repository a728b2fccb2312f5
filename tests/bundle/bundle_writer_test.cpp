// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle_writer.hpp"

#include <gtest/gtest.h>

#include <set>

#include "support/fixtures/bundles.hpp"

namespace kiln::test {
namespace {

std::vector<BundleMember> many_members(int units, std::size_t size = 200) {
  std::vector<BundleMember> members;
  for (int i = 0; i < units; ++i) {
    for (const int number : {80, 90}) {
      members.push_back(
          member_of("unit " + std::to_string(i), Target::sm(number),
                    {.size = size, .dependency_set = dependency_set_number(static_cast<std::uint64_t>(i))}));
    }
  }
  return members;
}

std::set<std::size_t> groups_that_differ(const BundleImage& a, const BundleImage& b) {
  std::set<std::size_t> different;
  for (std::size_t i = 0; i < std::max(a.groups.size(), b.groups.size()); ++i) {
    if (i >= a.groups.size() || i >= b.groups.size() || a.groups[i] != b.groups[i]) different.insert(i);
  }
  return different;
}

TEST(BundleWriter, OutputDoesNotDependOnMemberOrder) {
  auto members = many_members(20);
  const std::string bytes = image_of(members).to_file();
  std::reverse(members.begin(), members.end());
  EXPECT_TRUE(image_of(members).to_file() == bytes);
  std::rotate(members.begin(), members.begin() + 7, members.end());
  EXPECT_TRUE(image_of(members).to_file() == bytes);
}

TEST(BundleWriter, StoresNoCostAndNoLog) {
  auto members = many_members(1);
  const std::string bytes = image_of(members).to_file();
  members[0].artifact.metadata.cost_ms = 5'000;
  members[0].artifact.metadata.log = "another warning\n";
  EXPECT_TRUE(image_of(members).to_file() == bytes);
}

TEST(BundleWriter, RewritingMembersOfBundleGivesEqualBytes) {
  auto members = many_members(20);
  members.push_back(member_of("a.cl", Target::opencl("a device"), {.size = 3'000, .packs = true}));
  members.push_back(member_of("b.cu", {"sm_100f", Form::Cubin}));
  members.push_back(member_of("b.cu", {"sm_100a", Form::Ptx}));
  const BundleWriter::Options options{.name_space = "acme/vision", .epoch = 7};
  const std::string bytes = image_of(members, nullptr, options).to_file();
  const auto again = open_bytes(bytes).value()->members();
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(again->size(), members.size());
  EXPECT_TRUE(image_of(*again, nullptr, options).to_file() == bytes);
  const auto image = open_bytes(bytes).value()->image();
  EXPECT_TRUE(image.has_value() && image->to_file() == bytes);
}

TEST(BundleWriter, AddsEachKeyOnce) {
  BundleWriter writer({});
  EXPECT_TRUE(writer.add(member_of("a.cu", Target::sm(80))).value());
  EXPECT_FALSE(writer.add(member_of("a.cu", Target::sm(80))).value());
  EXPECT_EQ(writer.size(), 1u);
}

TEST(BundleWriter, StoresSecondArtifactOfUnitAndTargetUnderItsKey) {
  const BundleMember one = member_of("a.cu", Target::sm(80), {.dependency_set = dependency_set_number(1)});
  const BundleMember two = member_of("a.cu", Target::sm(80), {.dependency_set = dependency_set_number(2)});
  const auto bundle = open_bytes(image_of({one, two}).to_file()).value();
  EXPECT_TRUE(bundle->get(one.key, {}).value().has_value());
  EXPECT_TRUE(bundle->get(two.key, {}).value().has_value());
  EXPECT_EQ(bundle->find(one.unit, Target::sm(80)).value()->key, std::min(one.key, two.key));
  EXPECT_EQ(bundle->dependency_sets(one.request, Store::kMaxDependencySets, {}).value().size(), 2u);
  EXPECT_TRUE(bundle->verify().has_value());
}

TEST(BundleWriter, LimitsDependencySetsPerRequestLikeAStore) {
  std::vector<BundleMember> members;
  for (std::uint64_t i = 0; i < 20; ++i) {
    members.push_back(member_of("a.cu", Target::sm(80), {.dependency_set = dependency_set_number(i)}));
  }
  const std::string bytes = image_of(members).to_file();
  const auto bundle = open_bytes(bytes).value();
  EXPECT_EQ(bundle->dependency_sets(members[0].request, Store::kMaxDependencySets, {}).value().size(),
            Store::kMaxDependencySets);
  for (const BundleMember& member : members) EXPECT_TRUE(bundle->get(member.key, {}).value().has_value());
  EXPECT_TRUE(bundle->verify().has_value());
  EXPECT_TRUE(image_of(bundle->members().value()).to_file() == bytes);
}

TEST(BundleWriter, OmitsMachineSpecificDependencySets) {
  DependencySet located = dependency_set_number(1);
  located.embeds_paths = true;
  located.working_directory = "/home/user/secret";
  DependencySet timed = dependency_set_number(2);
  timed.embeds_mtimes = true;
  DependencySet absolute = dependency_set_number(3);
  absolute.items[1].root = DependencySet::kAbsolute;
  absolute.items[1].name = "/home/user/secret.h";
  for (const DependencySet& dependency_set : {located, timed, absolute}) {
    const BundleMember member = member_of("a.cu", Target::sm(80), {.dependency_set = dependency_set});
    const auto bundle = open_bytes(image_of({member}).to_file()).value();
    EXPECT_TRUE(bundle->dependency_sets(member.request, Store::kMaxDependencySets, {}).value().empty());
    EXPECT_TRUE(bundle->find(member.unit, Target::sm(80)).value().has_value());
    EXPECT_TRUE(bundle->description().value().artifacts[0].files.empty());
    EXPECT_TRUE(bundle->verify().has_value());
  }
}

TEST(BundleWriter, RejectsKeyThatDoesNotMatchDependencySet) {
  BundleMember member = member_of("a.cu", Target::sm(80), {.dependency_set = dependency_set_number(1)});
  member.artifact.dependency_set = std::make_shared<const DependencySet>(dependency_set_number(2));
  EXPECT_EQ(BundleWriter({}).add(member).error().code, Code::InvalidArgument);
}

TEST(BundleWriter, RejectsInvalidTargetsAndNamespaces) {
  for (const std::string architecture : {"", "sm_", "sm_080", "sm_90x", "gfx90a"}) {
    EXPECT_FALSE(BundleWriter({}).add(member_of("a.cu", {architecture, Form::Cubin})).has_value()) << architecture;
  }
  for (const std::string name_space : {"", "Acme", "a//b", "a b"}) {
    EXPECT_FALSE(BundleWriter({.name_space = name_space}).finish(nullptr).has_value()) << name_space;
  }
}

TEST(BundleWriter, WritesEmptyBundle) {
  const auto bundle = open_bytes(image_of({}).to_file()).value();
  EXPECT_FALSE(bundle->get(key_number(1), {}).value().has_value());
  EXPECT_FALSE(bundle->find(unit_key_of("a"), Target::sm(80)).value().has_value());
  EXPECT_TRUE(bundle->verify().has_value());
}

TEST(BundleWriter, WritesManyPages) {
  const auto members = many_members(500, 20);
  const auto bundle = open_bytes(image_of(members).to_file()).value();
  EXPECT_GE(bundle->header().pages.size(), 70u);
  for (const BundleMember& member : members) {
    ASSERT_TRUE(bundle->get(member.key, {}).value().has_value());
    EXPECT_EQ(bundle->find(member.unit, member.artifact.target).value()->key, member.key);
    EXPECT_EQ(bundle->dependency_sets(member.request, Store::kMaxDependencySets, {}).value().size(), 1u);
  }
  for (std::uint64_t i = 0; i < 200; ++i) EXPECT_FALSE(bundle->get(key_number(i), {}).value().has_value());
  const auto verified = bundle->verify();
  EXPECT_TRUE(verified.has_value()) << verified.error().message;
}

TEST(BundleWriter, ChangedUnitChangesOneGroup) {
  for (const int units : {14, 200}) {
    auto members = many_members(units);
    const BundleImage before = image_of(members);
    EXPECT_EQ(before.groups.size(), units == 14 ? 15u : 65u);
    members[6].artifact.bytes = Bytes::of("other code");
    const auto different = groups_that_differ(before, image_of(members));
    EXPECT_EQ(different.size(), 2u) << "the group of the unit and that of the description";
    EXPECT_TRUE(different.count(0));
  }
}

TEST(BundleWriter, StoresSharedDependencySetOnce) {
  const BundleMember one =
      member_of("a.cu", Target::sm(80), {.size = 10, .dependency_set = dependency_set_number(1, 300)});
  const BundleMember two =
      member_of("a.cu", Target::sm(90), {.size = 10, .dependency_set = dependency_set_number(1, 300)});
  EXPECT_LT(image_of({one, two}).groups[1].size(), image_of({one}).groups[1].size() + 1'000);
}

TEST(BundleWriter, StoresIncompressibleAndExtremelyCompressibleBlobsRaw) {
  BundleMember noise = member_of("a.cu", Target::sm(80), {.size = 10'000});
  BundleMember zeros = member_of("b.cu", Target::sm(80));
  zeros.artifact.bytes = Bytes::of(std::string(8 << 20, '\0'));
  const BundleImage image = image_of({noise, zeros});
  EXPECT_NE(image.groups[1].find(noise.artifact.bytes.view()), std::string::npos);
  EXPECT_GT(image.groups[2].size(), std::size_t{8} << 20);
  const auto bundle = open_bytes(image.to_file()).value();
  EXPECT_TRUE(bundle->get(zeros.key, {}).value()->artifact.bytes == zeros.artifact.bytes);
}

TEST(BundleWriter, DescribesArtifacts) {
  const BundleMember member =
      member_of("pip.cu", Target::sm(80), {.size = 321, .dependency_set = dependency_set_number(1)});
  const auto description = open_bytes(image_of({member}).to_file()).value()->description().value();
  EXPECT_EQ(description.generator.substr(0, 5), "kiln ");
  ASSERT_EQ(description.artifacts.size(), 1u);
  const BundleDescription::Artifact& about = description.artifacts[0];
  EXPECT_EQ(about, describe(member, member.artifact.dependency_set.get()));
  EXPECT_EQ(about.unit, "pip.cu");
  EXPECT_EQ(about.bytes, 321u);
  EXPECT_EQ(about.compiler, member.compiler);
  EXPECT_EQ(about.version, member.version);
  EXPECT_EQ(about.compiler_digest, member.compiler_digest);
  EXPECT_EQ(about.files.size(), 3u);
  EXPECT_EQ(about.files[1].place, "root 1");
  EXPECT_EQ(about.files[1].state, "read");
}

TEST(BundleDescription, RoundTripsTargetOfEveryForm) {
  for (const Target& target : {Target::sm(90), Target{"sm_100a", Form::Ptx}, Target::opencl("a device"),
                               Target::external("sm_90 of another cache")}) {
    BundleDescription description;
    description.artifacts.push_back(describe(member_of("a.cu", target), nullptr));
    const auto read = BundleDescription::parse(description.encode());
    ASSERT_TRUE(read.has_value()) << target.name();
    EXPECT_EQ(read->artifacts[0].target, target);
  }
}

TEST(BundleDescription, RejectsInvalidText) {
  for (const char* text : {"", "[]", "{}", "nonsense", R"({"kiln": "bundle description 2"})",
                           R"({"kiln": "bundle description 1", "generator": "x", "artifacts": [{}]})",
                           R"({"kiln": "bundle description 1", "generator": "x", "artifacts": [1]})"}) {
    EXPECT_EQ(BundleDescription::parse(text).error().code, Code::Corrupt) << text;
  }
}

TEST(BundleDescription, IgnoresUnknownMembers) {
  const char* const text = R"({"kiln": "bundle description 1", "new": [{}], "generator": "x", "artifacts": []})";
  EXPECT_TRUE(BundleDescription::parse(text).has_value());
}

}  // namespace
}  // namespace kiln::test
