// SPDX-License-Identifier: Apache-2.0
#include "trust/namespace_scope.hpp"

#include <gtest/gtest.h>

#include "trust/policy.hpp"

namespace kiln {
namespace {

TEST(NamespaceScope, AdmitsNamespacesMatchingEveryList) {
  const NamespaceScope all;
  EXPECT_TRUE(all.admits_all());
  EXPECT_TRUE(all.admits("acme/vision"));
  const NamespaceScope session = all.narrowed({"acme/*", "globex"});
  EXPECT_TRUE(session.admits("acme/vision"));
  EXPECT_TRUE(session.admits("globex"));
  EXPECT_FALSE(session.admits("acme"));
  const NamespaceScope unit = session.narrowed({"acme/vision", "initech"});
  EXPECT_TRUE(unit.admits("acme/vision"));
  EXPECT_FALSE(unit.admits("acme/toys"));
  EXPECT_FALSE(unit.admits("initech"));  // the session does not admit it
  EXPECT_EQ(unit.named(), std::vector<std::string>{"acme/vision"});
}

TEST(NamespaceScope, EmptyListAdmitsAllAndInvalidPatternAdmitsNone) {
  EXPECT_TRUE(NamespaceScope().narrowed({}).admits_all());
  const NamespaceScope mistyped = NamespaceScope().narrowed({"Acme/Vision", "acme//*"});
  EXPECT_FALSE(mistyped.admits("acme/vision"));
  EXPECT_FALSE(mistyped.admits("Acme/Vision"));
  EXPECT_TRUE(mistyped.named().empty());
}

TEST(NamespaceScope, DifferentListsHaveDifferentBytes) {
  const NamespaceScope one = NamespaceScope().narrowed({"a", "b"});
  const NamespaceScope two = NamespaceScope().narrowed({"a"}).narrowed({"b"});
  EXPECT_NE(one.encode(), two.encode());
  EXPECT_NE(one, two);
  EXPECT_EQ(one.encode(), NamespaceScope().narrowed({"a", "b"}).encode());
}

TEST(ExternalCode, IsRejectedOnlyByPolicyThatDisallowsIt) {
  const SecretKey key = SecretKey::generate();
  TrustPolicy policy;
  policy.add_key(key.public_key(), "acme");
  const Statement own = {"kiln bundle 1", "acme", 1, {}};
  const Statement external = {std::string(kExternalSubject) + "bundle 1", "acme", 1, {}};
  const Signature by_own = key.sign(own);
  const Signature by_external = key.sign(external);
  EXPECT_TRUE(policy.verify_bundle(external, &by_external).has_value());
  EXPECT_FALSE(
      policy.verify_bundle(own, &by_external).has_value());  // a signature for one subject is invalid for another
  TrustPolicy strict;
  strict.reject_external();
  EXPECT_NE(strict.fingerprint(), TrustPolicy().fingerprint());
  strict.add(policy);
  EXPECT_FALSE(strict.verify_bundle(external, &by_external).has_value());
  EXPECT_TRUE(strict.verify_bundle(own, &by_own).has_value());
  strict.allow_unsigned();
  EXPECT_FALSE(strict.verify_bundle(external, nullptr).has_value());
}

}  // namespace
}  // namespace kiln
