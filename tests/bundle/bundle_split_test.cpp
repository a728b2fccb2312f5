// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle_split.hpp"

#include <gtest/gtest.h>

#include <map>

#include "bundle/bundle.hpp"
#include "support/fixtures/bundles.hpp"

namespace kiln {
namespace {

using Strings = std::vector<std::string>;
using test::member_of;

/// Returns the units and targets of each part, as `a sm_80`.
std::map<std::string, Strings> split(const std::vector<BundleMember>& members) {
  std::map<std::string, Strings> out;
  for (const BundlePart& part : split_by_architecture(members)) {
    Strings& names = out[part.name];
    for (const BundleMember& member : part.members) {
      names.push_back(member.artifact.metadata.unit + ' ' + member.artifact.target.name());
    }
  }
  return out;
}

Target target(const char* name) { return Target::parse(name).value(); }

TEST(SplitBundle, PartHasWhatADeviceOfItsArchitectureUses) {
  const auto parts =
      split({member_of("a", target("sm_80")), member_of("a", target("sm_86")), member_of("a", target("compute_80")),
             member_of("b", target("sm_80")), member_of("c", target("compute_70")), member_of("d", target("sm_90"))});
  EXPECT_EQ(parts, (std::map<std::string, Strings>{{"compute_70", {"c compute_70"}},
                                                   {"compute_80", {"a compute_80", "c compute_70"}},
                                                   {"sm_80", {"a sm_80", "b sm_80", "c compute_70"}},
                                                   {"sm_86", {"a sm_86", "b sm_80", "c compute_70"}},
                                                   {"sm_90", {"a compute_80", "c compute_70", "d sm_90"}}}));
}

TEST(SplitBundle, CodeForOneDeviceStaysTogether) {
  const auto parts = split({member_of("a", target("sm_90")), member_of("a", target("sm_90a")),
                            member_of("a", target("lto_90")), member_of("s", target("cccl_90"))});
  EXPECT_EQ(parts, (std::map<std::string, Strings>{{"sm_90", {"a sm_90", "a sm_90a", "a lto_90", "s cccl_90"}}}));
}

TEST(SplitBundle, OtherTargetsHavePartsOfTheirOwn) {
  const auto parts = split({member_of("a", Target::opencl("cpu: a/b")), member_of("a", Target::opencl("cpu: a:b")),
                            member_of("b", Target::opencl("plain")), member_of("c", target("sm_80"))});
  ASSERT_EQ(parts.size(), 4U) << "devices whose names differ only in special characters are not mixed up";
  for (const auto& [name, members] : parts) {
    EXPECT_EQ(members.size(), 1U) << name;
    EXPECT_EQ(name.find_first_of("/: "), std::string::npos) << name;
  }
  EXPECT_TRUE(parts.contains("plain"));
}

TEST(SplitBundle, DeviceFindsTheSameCodeInItsPartAsInTheWholeBundle) {
  std::vector<BundleMember> members;
  const char* const kTargets[] = {"sm_75",  "sm_80",   "sm_86",   "sm_87",      "sm_90a",
                                  "sm_100", "sm_100a", "sm_103f", "compute_75", "compute_90"};
  // Each unit has another subset of the targets.
  for (unsigned subset = 1; subset < 1024; subset += 7) {
    for (unsigned bit = 0; bit < 10; ++bit) {
      if ((subset >> bit & 1) != 0) members.push_back(member_of("u" + std::to_string(subset), target(kTargets[bit])));
    }
  }
  const std::vector<BundlePart> parts = split_by_architecture(members);
  Strings names;
  std::map<std::string, std::unique_ptr<Bundle>> bundles;
  for (const BundlePart& part : parts) {
    names.push_back(part.name);
    bundles[part.name] = test::open_bytes(test::image_of(part.members).to_file()).value();
  }
  const auto whole = test::open_bytes(test::image_of(members).to_file()).value();
  for (const char* device : {"sm_70", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_103",
                             "sm_105", "sm_107", "sm_120"}) {
    const std::optional<std::size_t> best = best_part(names, target(device));
    for (unsigned subset = 1; subset < 1024; subset += 7) {
      const UnitKey unit = test::unit_key_of("u" + std::to_string(subset));
      const auto expected = whole->find(unit, target(device)).value();
      const auto found = best ? bundles[names[*best]]->find(unit, target(device)).value() : std::nullopt;
      ASSERT_EQ(expected.has_value(), found.has_value()) << device << " u" << subset;
      if (expected) {
        EXPECT_EQ(expected->key, found->key) << device << " u" << subset;
      }
    }
  }
}

TEST(SplitBundle, BestPartIsTheMostSpecificOneThatRuns) {
  const Strings names = {"compute_80", "sm_80", "sm_86", "sm_90", "triton"};
  EXPECT_EQ(best_part(names, target("sm_86")), 2U);
  EXPECT_EQ(best_part(names, target("sm_89")), 2U);
  EXPECT_EQ(best_part(names, target("sm_120")), 0U) << "PTX";
  EXPECT_FALSE(best_part(names, target("sm_75")).has_value());
  EXPECT_FALSE(best_part({}, target("sm_90")).has_value());
}

}  // namespace
}  // namespace kiln
