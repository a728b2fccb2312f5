// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "bundle/hostile_corpus.hpp"

namespace kiln::test {
namespace {

class HostileBundle : public testing::TestWithParam<Hostile> {};

/// Queries everything and returns the first error.
Status ask(Bundle& bundle, const std::vector<BundleMember>& of) {
  for (const BundleMember& member : of) {
    if (const auto hit = bundle.get(member.key, {}); !hit) return hit.error();
    if (const auto found = bundle.find(member.unit, member.artifact.target); !found) return found.error();
    if (const auto reported = bundle.dependency_sets(member.request, Store::kMaxDependencySets, {}); !reported)
      return reported.error();
  }
  return {};
}

TEST_P(HostileBundle, IsRejectedWithReason) {
  const Hostile& hostile = GetParam();
  Forge forge(hostile.of);
  const std::string bytes = hostile.make(forge);
  const auto bundle = open_bytes(bytes);
  Status rejected;
  if (!bundle) {
    rejected = bundle.error();
    EXPECT_EQ(hostile.stage, Stage::Open) << rejected.error().message;
  } else {
    EXPECT_NE(hostile.stage, Stage::Open);
    rejected = hostile.stage == Stage::Asked ? ask(**bundle, hostile.of) : (*bundle)->verify();
    EXPECT_FALSE((*bundle)->verify().has_value());
  }
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().code, Code::Corrupt);
  EXPECT_NE(rejected.error().message.find(hostile.reason), std::string::npos) << rejected.error().message;
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
