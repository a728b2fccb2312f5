// SPDX-License-Identifier: Apache-2.0
// Files that expand: their cost to the program must be bounded.
#include "hostile/hostile_input.hpp"

namespace kiln::test {
namespace {

TEST_F(HostileInput, BundleVerifyOfAnUnsignedBombIsBounded) {
  const std::string bomb = description_bomb();
  EXPECT_LT(read_text(bomb).size(), 450'000U);
  const Cost cost = cost_of({"bundle", "verify", bomb});
  expect_bounded(cost, "verify");
  EXPECT_EQ(cost.code, 4) << cost.text.substr(0, 300);
  EXPECT_NE(cost.text.find("the bundle is not signed"), std::string::npos) << cost.text.substr(0, 300);
}

TEST_F(HostileInput, BundleListOfABombIsBounded) {
  const std::string bomb = description_bomb();
  for (const Strings& command : {Strings{"bundle", "ls", bomb}, Strings{"bundle", "ls", bomb, "--json"},
                                 Strings{"bundle", "diff", bomb, bomb}}) {
    const Cost cost = cost_of(command);
    expect_bounded(cost, command[1]);
    EXPECT_EQ(cost.code, 4) << cost.text.substr(0, 300);
  }
}

// The longest accepted description, with the values that take the most memory: its cost must be bounded too.
TEST_F(HostileInput, DescriptionsWithinTheLimitsAreBounded) {
  const std::string file = R"(,{"place":"","name":"","state":""})";
  const BundleDescription known = open_bytes(image_of({member_of("a.cu", Target::parse("sm_80").value())}).to_file())
                                      .value()
                                      ->description()
                                      .value();
  std::string head = known.encode();
  head.resize(head.find("\"files\":[") + 9);
  head.insert(head.find("\"artifacts\""), "\"noise\":\"" + noise(20'000) + "\",");
  const std::string dense = with_description(packed(head + file.substr(1), file, 120'000 * file.size(), "]}]}"));
  for (const Strings& command : {Strings{"bundle", "ls", dense}, Strings{"bundle", "ls", dense, "--json"},
                                 Strings{"bundle", "verify", "--untrusted", dense}}) {
    const Cost cost = cost_of(command);
    expect_bounded(cost, command[1]);
  }
}

TEST_F(HostileInput, ManyEntriesOfOneArtifactAreListedInTime) {
  const BundleDescription known = open_bytes(image_of({member_of("a.cu", Target::parse("sm_80").value())}).to_file())
                                      .value()
                                      ->description()
                                      .value();
  BundleDescription many = known;
  for (int i = 0; i < 150'000; ++i) many.artifacts[0].entries.push_back({"e" + std::to_string(i), "s"});
  const std::string text = many.encode();
  const std::string file = with_description(packed(text, " ", 0, ""));
  const Cost cost = cost_of({"bundle", "ls", file, "--json"});
  expect_bounded(cost, "ls --json");
  EXPECT_EQ(cost.code, 0) << cost.text.substr(0, 300);
}

TEST_F(HostileInput, BlobsThatExpandAreBoundedInVerify) {
  BundleMember member = member_of("a.cu", Target::parse("sm_80").value());
  Forge forge({member});
  const Packed zeros = packed(noise(400'000), std::string(1000, '\0'), 300U << 20, "");
  const BlobLocation place = forge.append(1, zeros.stored, BlobLocation::Method::Zstd, zeros.raw);
  forge.replace(forge.row(forge.find(BundleRow::Role::ByKey)).location, place);
  write_text(path("bomb.kiln"), forge.build());
  for (const Strings& command : {Strings{"bundle", "verify", "--untrusted", "bomb.kiln"},
                                 Strings{"bundle", "merge", "bomb.kiln", "-o", "x.kiln"},
                                 Strings{"bundle", "extract", "bomb.kiln", "a.cu", "-o", "x"}}) {
    expect_bounded(cost_of(command), command[1]);
  }
}

TEST_F(HostileInput, DeepDescriptionIsRejected) {
  const std::string deep(1'000'000, '[');
  const std::string bomb =
      with_description(packed(R"({"kiln":"bundle description 1","generator":)", deep, deep.size(), ""));
  for (const Strings& command : {Strings{"bundle", "ls", bomb}, Strings{"bundle", "verify", bomb}}) {
    const Cost cost = cost_of(command, kUnsignedAllowed);
    expect_bounded(cost, command[1]);
    EXPECT_EQ(cost.code, 1) << cost.text.substr(0, 300);
    EXPECT_NE(cost.text.find("nested too deeply"), std::string::npos) << cost.text.substr(0, 300);
  }
}

TEST_F(HostileInput, ManifestWithTooManyValuesIsRejected) {
  std::string text = "a = [";
  while (text.size() < (10U << 20)) text += "1,1,1,1,1,1,1,1,1,1,";
  write_text(path("kiln.toml"), text + "]\n");
  const Cost cost = cost_of({"bundle", "create", "kiln.toml", "-o", "x.kiln"});
  expect_bounded(cost, "create");
  EXPECT_EQ(cost.code, 2) << cost.text.substr(0, 300);
}

TEST_F(HostileInput, ImageLayoutWithTooManyValuesIsRejected) {
  std::filesystem::create_directories(path("layout/blobs/sha256"));
  write_text(path("layout/oci-layout"), R"({"imageLayoutVersion":"1.0.0"})");
  std::string text = R"({"schemaVersion":2,"manifests":[{})";
  while (text.size() < (4U << 20) - 100) text += ",{},{},{},{}";
  write_text(path("layout/index.json"), text + "]}");
  const Cost cost = cost_of({"bundle", "ls", "layout"});
  EXPECT_LT(cost.kilobytes, 64 << 10);
  EXPECT_NE(cost.text.find("more than 100000 values"), std::string::npos) << cost.text.substr(0, 300);
}

}  // namespace
}  // namespace kiln::test
