#include <gtest/gtest.h>

#include "bundle/hostile_corpus.hpp"

namespace kiln::test {
namespace {

class HostileBundle : public testing::TestWithParam<Hostile> {};

/// What asking for everything says first.
Status ask(Bundle& bundle, const std::vector<BundleMember>& of) {
  for (const BundleMember& member : of) {
    if (const auto hit = bundle.get(member.key); !hit) return hit.error();
    if (const auto found = bundle.find(member.unit, member.artifact.target); !found) return found.error();
    if (const auto told = bundle.closures(member.request); !told) return told.error();
  }
  return {};
}

TEST_P(HostileBundle, IsRefusedWithItsReason) {
  const Hostile& hostile = GetParam();
  Forge forge(hostile.of);
  const std::string bytes = hostile.make(forge);
  const auto bundle = open_bytes(bytes);
  Status refused;
  if (!bundle) {
    refused = bundle.error();
    EXPECT_EQ(hostile.stage, Stage::Open) << refused.error().message;
  } else {
    EXPECT_NE(hostile.stage, Stage::Open);
    refused = hostile.stage == Stage::Asked ? ask(**bundle, hostile.of) : (*bundle)->verify();
    EXPECT_FALSE((*bundle)->verify().ok());
  }
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::Corrupt);
  EXPECT_NE(refused.error().message.find(hostile.reason), std::string::npos) << refused.error().message;
}

std::vector<Hostile> all_hostile() {
  std::vector<Hostile> all;
  for (const auto& some : {hostile_headers(), hostile_heads(), hostile_rows(), hostile_pages(), hostile_frames(),
                           hostile_contents(), hostile_wholes(), hostile_descriptions()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Corpus, HostileBundle, testing::ValuesIn(all_hostile()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace kiln::test
