// SPDX-License-Identifier: Apache-2.0
#include "trust/policy.hpp"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "base/hash.hpp"

namespace kiln::test {
namespace {

Statement of(const std::string& name_space, std::uint64_t epoch = 5) {
  return {"kiln bundle 1", name_space, epoch, sha256("content")};
}

/// Returns why a statement is rejected; empty if it is trusted.
std::string error_of(const TrustPolicy& policy, const Statement& statement, const Signature* signature) {
  const Status status = policy.verify_bundle(statement, signature);
  if (status.has_value()) return {};
  EXPECT_EQ(status.error().code, Code::Denied);
  return status.error().message;
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class Policy : public testing::Test {
 protected:
  const SecretKey key_ = SecretKey::generate();
  const SecretKey other_ = SecretKey::generate();
  const std::string id_ = key_.public_key().id().hex().substr(0, 16);
};

TEST_F(Policy, TrustsKeyForItsNamespacesOnly) {
  TrustPolicy policy;
  policy.add_key(key_.public_key(), "acme/*");
  policy.add_key(key_.public_key(), "tools");
  for (const char* name : {"acme/vision", "acme/a/b", "tools"}) {
    const Signature signature = key_.sign(of(name));
    EXPECT_EQ(error_of(policy, of(name), &signature), "") << name;
  }
  for (const char* name : {"acme", "acmecorp/vision", "tools/a", "other"}) {
    const Signature signature = key_.sign(of(name));
    const std::string reason = error_of(policy, of(name), &signature);
    EXPECT_TRUE(says(reason, "is not allowed to sign for '" + std::string(name) + "'") && says(reason, id_)) << reason;
  }
}

TEST_F(Policy, EmptyPolicyTrustsNothing) {
  const TrustPolicy policy;
  EXPECT_TRUE(policy.empty());
  const Signature signature = key_.sign(of("acme"));
  EXPECT_NE(error_of(policy, of("acme"), &signature), "");
  EXPECT_NE(error_of(policy, of("acme"), nullptr), "");
}

TEST_F(Policy, ReportsUnknownKey) {
  TrustPolicy policy;
  policy.add_key(other_.public_key(), "*");
  const Signature signature = key_.sign(of("acme"));
  const std::string reason = error_of(policy, of("acme"), &signature);
  EXPECT_TRUE(says(reason, id_) && says(reason, "is not in the trust policy")) << reason;
  // An unknown signature does not count as unsigned.
  policy.allow_unsigned();
  EXPECT_EQ(error_of(policy, of("acme"), &signature), reason);
}

TEST_F(Policy, RejectsUnsignedUnlessAllowed) {
  TrustPolicy policy;
  policy.add_key(key_.public_key(), "*");
  const std::string reason = error_of(policy, of("acme"), nullptr);
  EXPECT_TRUE(says(reason, "the bundle is not signed") && says(reason, "trust.unsigned") && says(reason, "--key"))
      << reason;
  policy.allow_unsigned();
  EXPECT_EQ(error_of(policy, of("acme"), nullptr), "");
}

TEST_F(Policy, RejectsSignatureOfOtherContent) {
  TrustPolicy policy;
  policy.add_key(key_.public_key(), "*");
  const Signature good = key_.sign(of("acme", 5));
  EXPECT_EQ(error_of(policy, of("acme", 5), &good), "");
  Statement changed = of("acme", 5);
  changed.digest = sha256("other content");
  EXPECT_TRUE(says(error_of(policy, changed, &good), "signature is invalid"));
  EXPECT_TRUE(says(error_of(policy, of("acme", 6), &good), "signature is invalid")) << "a later epoch than was signed";
  EXPECT_TRUE(says(error_of(policy, of("acme2", 5), &good), "signature is invalid"));
  changed = of("acme", 5);
  changed.subject = "kiln artifact 1";
  EXPECT_TRUE(says(error_of(policy, changed, &good), "signature is invalid"));
  for (std::size_t bit = 0; bit != good.bytes.size() * 8; ++bit) {
    Signature flipped = good;
    flipped.bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    EXPECT_TRUE(says(error_of(policy, of("acme", 5), &flipped), "signature is invalid")) << bit;
  }
  policy.add_key(other_.public_key(), "*");
  Signature borrowed = good;
  borrowed.key = other_.public_key().id();
  EXPECT_TRUE(says(error_of(policy, of("acme", 5), &borrowed), "signature is invalid"))
      << "the signature of another key";
  policy.allow_unsigned();
  EXPECT_TRUE(says(error_of(policy, changed, &good), "signature is invalid"))
      << "an invalid signature is rejected although unsigned is allowed";
}

TEST_F(Policy, RejectsEpochBelowHighestMatchingMinimum) {
  TrustPolicy policy;
  policy.add_key(key_.public_key(), "*");
  policy.require_epoch("*", 3);
  policy.require_epoch("acme/*", 7);
  policy.require_epoch("acme/*", 6);
  policy.require_epoch("acme/vision", 4);
  const auto reason = [&](const std::string& name, std::uint64_t epoch) {
    const Signature signature = key_.sign(of(name, epoch));
    return error_of(policy, of(name, epoch), &signature);
  };
  EXPECT_TRUE(says(reason("acme/vision", 6), "epoch 6") && says(reason("acme/vision", 6), "requires 7"));
  EXPECT_EQ(reason("acme/vision", 7), "");
  EXPECT_EQ(reason("acme/vision", 8), "");
  EXPECT_EQ(reason("other", 3), "");
  EXPECT_TRUE(says(reason("other", 2), "requires 3"));
  policy.allow_unsigned();
  EXPECT_EQ(error_of(policy, of("other", 3), nullptr), "");
  EXPECT_TRUE(says(error_of(policy, of("other", 2), nullptr), "requires 3")) << "also for unsigned bundles";
}

TEST_F(Policy, RejectsInvalidNamespace) {
  TrustPolicy policy;
  policy.add_key(key_.public_key(), "*");
  policy.allow_unsigned();
  for (const char* name : {"", "Acme", "acme/", "*", "acme/*", "a\nb"}) {
    const Signature signature = key_.sign(of(name));
    EXPECT_TRUE(says(error_of(policy, of(name), &signature), "namespace")) << name;
    EXPECT_TRUE(says(error_of(policy, of(name), nullptr), "namespace")) << name;
  }
}

TEST_F(Policy, MergesPolicies) {
  TrustPolicy one;
  one.add_key(key_.public_key(), "acme");
  one.require_epoch("*", 2);
  TrustPolicy two;
  two.add_key(key_.public_key(), "tools");
  two.add_key(other_.public_key(), "acme");
  two.require_epoch("*", 4);
  one.add(two);
  one.add(one);
  for (const auto& [key, name] : {std::pair{&key_, "acme"}, {&key_, "tools"}, {&other_, "acme"}}) {
    const Signature now = key->sign(of(name, 4));
    EXPECT_EQ(error_of(one, of(name, 4), &now), "") << name;
    const Signature before = key->sign(of(name, 3));
    EXPECT_NE(error_of(one, of(name, 3), &before), "") << name;
  }
  EXPECT_FALSE(one.allows_unsigned());
  TrustPolicy lax;
  lax.allow_unsigned();
  one.add(lax);
  EXPECT_TRUE(one.allows_unsigned());
}

TEST(NameSpacePattern, IsNamespaceSubtreeOrAll) {
  for (const char* text : {"*", "acme", "acme/*", "acme/vision/*"}) EXPECT_TRUE(is_name_space_pattern(text)) << text;
  for (const char* text : {"", "/*", "**", "acme*", "acme/*/x", "*/acme", "acme/**", "Acme/*", "acme//*"})
    EXPECT_FALSE(is_name_space_pattern(text)) << text;
  EXPECT_TRUE(pattern_matches("*", "acme"));
  EXPECT_FALSE(pattern_matches("*", "")) << "no pattern matches an invalid namespace";
  EXPECT_FALSE(pattern_matches("acme/*", "acme"));
  EXPECT_FALSE(pattern_matches("acme*", "acme"));
}

}  // namespace
}  // namespace kiln::test
