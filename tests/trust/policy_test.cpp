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

/// Why a statement is refused; empty where it is believed.
std::string reason(const TrustPolicy& policy, const Statement& statement, const Signature* signature) {
  const Status status = policy.admit(statement, signature);
  if (status.ok()) return {};
  EXPECT_EQ(status.error().code, Code::Refused);
  return status.error().message;
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class Policy : public testing::Test {
 protected:
  const SecretKey key_ = SecretKey::generate();
  const SecretKey other_ = SecretKey::generate();
  const std::string id_ = key_.public_key().id().hex().substr(0, 16);
};

TEST_F(Policy, BelievesAKeyForItsNamespacesAlone) {
  TrustPolicy policy;
  policy.trust(key_.public_key(), "acme/*");
  policy.trust(key_.public_key(), "tools");
  for (const char* name : {"acme/vision", "acme/a/b", "tools"}) {
    const Signature signature = key_.sign(of(name));
    EXPECT_EQ(reason(policy, of(name), &signature), "") << name;
  }
  for (const char* name : {"acme", "acmecorp/vision", "tools/a", "other"}) {
    const Signature signature = key_.sign(of(name));
    const std::string why = reason(policy, of(name), &signature);
    EXPECT_TRUE(says(why, "may not speak for '" + std::string(name) + "'") && says(why, id_)) << why;
  }
}

TEST_F(Policy, BelievesNobodyAsItIsMade) {
  const TrustPolicy policy;
  EXPECT_TRUE(policy.empty());
  const Signature signature = key_.sign(of("acme"));
  EXPECT_NE(reason(policy, of("acme"), &signature), "");
  EXPECT_NE(reason(policy, of("acme"), nullptr), "");
}

TEST_F(Policy, SaysWhichKeyItDoesNotKnow) {
  TrustPolicy policy;
  policy.trust(other_.public_key(), "*");
  const Signature signature = key_.sign(of("acme"));
  const std::string why = reason(policy, of("acme"), &signature);
  EXPECT_TRUE(says(why, id_) && says(why, "does not know")) << why;
  // Nor does it take an unknown signature for none.
  policy.allow_unsigned();
  EXPECT_EQ(reason(policy, of("acme"), &signature), why);
}

TEST_F(Policy, RefusesWhatNobodySignedUnlessThatIsAllowed) {
  TrustPolicy policy;
  policy.trust(key_.public_key(), "*");
  const std::string why = reason(policy, of("acme"), nullptr);
  EXPECT_TRUE(says(why, "nobody signed it") && says(why, "trust.unsigned") && says(why, "--key")) << why;
  policy.allow_unsigned();
  EXPECT_EQ(reason(policy, of("acme"), nullptr), "");
}

TEST_F(Policy, RefusesASignatureOverAnythingElse) {
  TrustPolicy policy;
  policy.trust(key_.public_key(), "*");
  const Signature good = key_.sign(of("acme", 5));
  EXPECT_EQ(reason(policy, of("acme", 5), &good), "");
  Statement changed = of("acme", 5);
  changed.digest = sha256("other content");
  EXPECT_TRUE(says(reason(policy, changed, &good), "does not hold"));
  EXPECT_TRUE(says(reason(policy, of("acme", 6), &good), "does not hold")) << "a later epoch than was signed";
  EXPECT_TRUE(says(reason(policy, of("acme2", 5), &good), "does not hold"));
  changed = of("acme", 5);
  changed.subject = "kiln artifact 1";
  EXPECT_TRUE(says(reason(policy, changed, &good), "does not hold"));
  for (std::size_t bit = 0; bit != good.bytes.size() * 8; ++bit) {
    Signature flipped = good;
    flipped.bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    EXPECT_TRUE(says(reason(policy, of("acme", 5), &flipped), "does not hold")) << bit;
  }
  policy.trust(other_.public_key(), "*");
  Signature borrowed = good;
  borrowed.key = other_.public_key().id();
  EXPECT_TRUE(says(reason(policy, of("acme", 5), &borrowed), "does not hold")) << "somebody else's signature";
  policy.allow_unsigned();
  EXPECT_TRUE(says(reason(policy, changed, &good), "does not hold")) << "a wrong signature is worse than none";
}

TEST_F(Policy, RefusesWhatIsOlderThanTheLatestEpochThatAnyPatternAsksFor) {
  TrustPolicy policy;
  policy.trust(key_.public_key(), "*");
  policy.require_epoch("*", 3);
  policy.require_epoch("acme/*", 7);
  policy.require_epoch("acme/*", 6);
  policy.require_epoch("acme/vision", 4);
  const auto why = [&](const std::string& name, std::uint64_t epoch) {
    const Signature signature = key_.sign(of(name, epoch));
    return reason(policy, of(name, epoch), &signature);
  };
  EXPECT_TRUE(says(why("acme/vision", 6), "epoch 6") && says(why("acme/vision", 6), "wants 7"));
  EXPECT_EQ(why("acme/vision", 7), "");
  EXPECT_EQ(why("acme/vision", 8), "");
  EXPECT_EQ(why("other", 3), "");
  EXPECT_TRUE(says(why("other", 2), "wants 3"));
  policy.allow_unsigned();
  EXPECT_EQ(reason(policy, of("other", 3), nullptr), "");
  EXPECT_TRUE(says(reason(policy, of("other", 2), nullptr), "wants 3")) << "unsigned ones too";
}

TEST_F(Policy, RefusesANamespaceThatIsNone) {
  TrustPolicy policy;
  policy.trust(key_.public_key(), "*");
  policy.allow_unsigned();
  for (const char* name : {"", "Acme", "acme/", "*", "acme/*", "a\nb"}) {
    const Signature signature = key_.sign(of(name));
    EXPECT_TRUE(says(reason(policy, of(name), &signature), "namespace")) << name;
    EXPECT_TRUE(says(reason(policy, of(name), nullptr), "namespace")) << name;
  }
}

TEST_F(Policy, AddsUpToWhatBothSay) {
  TrustPolicy one;
  one.trust(key_.public_key(), "acme");
  one.require_epoch("*", 2);
  TrustPolicy two;
  two.trust(key_.public_key(), "tools");
  two.trust(other_.public_key(), "acme");
  two.require_epoch("*", 4);
  one.add(two);
  one.add(one);
  for (const auto& [key, name] : {std::pair{&key_, "acme"}, {&key_, "tools"}, {&other_, "acme"}}) {
    const Signature now = key->sign(of(name, 4));
    EXPECT_EQ(reason(one, of(name, 4), &now), "") << name;
    const Signature before = key->sign(of(name, 3));
    EXPECT_NE(reason(one, of(name, 3), &before), "") << name;
  }
  EXPECT_FALSE(one.allows_unsigned());
  TrustPolicy lax;
  lax.allow_unsigned();
  one.add(lax);
  EXPECT_TRUE(one.allows_unsigned());
}

TEST(NameSpacePattern, IsANamespaceAllBelowOneOrAll) {
  for (const char* text : {"*", "acme", "acme/*", "acme/vision/*"}) EXPECT_TRUE(is_name_space_pattern(text)) << text;
  for (const char* text : {"", "/*", "**", "acme*", "acme/*/x", "*/acme", "acme/**", "Acme/*", "acme//*"})
    EXPECT_FALSE(is_name_space_pattern(text)) << text;
  EXPECT_TRUE(covers("*", "acme"));
  EXPECT_FALSE(covers("*", "")) << "nothing covers what is no namespace";
  EXPECT_FALSE(covers("acme/*", "acme"));
  EXPECT_FALSE(covers("acme*", "acme"));
}

}  // namespace
}  // namespace kiln::test
