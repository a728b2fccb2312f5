// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/hash.hpp"
#include "trust/policy.hpp"
#include "trust/signer.hpp"

namespace kiln::test {
namespace {

using Reason = TrustError::Reason;

constexpr std::uint64_t kToday = 20000;
constexpr std::chrono::nanoseconds kNow = std::chrono::hours(24 * kToday + 12);
constexpr const char* kSubject = "kiln entry 1";

/// A policy that trusts an authority for everything below `acme`, and its hosts in `acme/live` for a week.
class LivePolicy : public testing::Test {
 protected:
  LivePolicy() {
    policy_.add_key(authority_.public_key(), "acme/*");
    policy_.trust_live_namespace("acme/live", 7);
  }

  /// A statement signed by the host, for a day and a namespace, with a certificate for `certified`.
  SignedStatement stated(std::uint64_t day = kToday, const std::string& name_space = "acme/live",
                         std::uint64_t last_day = kToday, const std::string& certified = "acme/live") const {
    SignedStatement result = plain(host_, name_space, day);
    result.certificate = Certificate::make(authority_, host_.public_key(), certified, last_day);
    return result;
  }
  static SignedStatement plain(const SecretKey& key, const std::string& name_space, std::uint64_t epoch) {
    SignedStatement result;
    result.statement = {kSubject, name_space, epoch, sha256("content")};
    result.signature = key.sign(result.statement);
    return result;
  }

  /// Returns the reason code of the rejection, or "trusted". The message must contain `part`, the next step.
  std::string error(const SignedStatement& stated, const std::string& part = {}) const {
    const std::optional<TrustError> found = policy_.verify(stated, kNow);
    if (!found) return "trusted";
    EXPECT_NE(found->message.find(part), std::string::npos) << found->message;
    for (const SecretKey* key : {&authority_, &host_, &other_}) {
      EXPECT_EQ(found->message.find(key->public_key().text().substr(14)), std::string::npos) << found->message;
      EXPECT_EQ(found->message.find(key->public_key().id().hex().substr(0, 17)), std::string::npos) << found->message;
    }
    return to_string(found->reason);
  }
  std::string rejected(const SecretKey& key, const std::string& name_space) const {
    const Statement statement = {"kiln bundle 1", name_space, 5, sha256("content")};
    const Signature signature = key.sign(statement);
    const Status status = policy_.verify_bundle(statement, &signature);
    return status.has_value() ? std::string() : status.error().message;
  }

  const SecretKey authority_ = SecretKey::generate();
  const SecretKey host_ = SecretKey::generate();
  const SecretKey other_ = SecretKey::generate();
  TrustPolicy policy_;
};

TEST_F(LivePolicy, TrustsCertifiedHostInLiveNamespace) { EXPECT_EQ(error(stated()), "trusted"); }

TEST_F(LivePolicy, TrustsCiSignerInOtherNamespaces) {
  EXPECT_EQ(error(plain(authority_, "acme/vision", 3)), "trusted");
  policy_.require_epoch("acme/vision", 4);
  EXPECT_EQ(error(plain(authority_, "acme/vision", 3), "get a newer version"), "epoch_too_old");
}

TEST_F(LivePolicy, RejectsUnsignedEvenIfUnsignedBundlesAreAllowed) {
  policy_.allow_unsigned();
  for (const char* name : {"acme/live", "acme/vision"}) {
    SignedStatement unsigned_statement = stated(kToday, name);
    unsigned_statement.signature.reset();
    EXPECT_EQ(error(unsigned_statement, "remote.signing_key"), "unsigned") << name;
    unsigned_statement.certificate.reset();
    EXPECT_EQ(error(unsigned_statement, "remote.signing_key"), "unsigned") << name;
  }
}

TEST_F(LivePolicy, RejectsInvalidNamespaceWithoutRepeatingIt) {
  policy_.add_key(authority_.public_key(), "*");
  for (const char* name : {"", "Acme/Live", "acme/*", "acme\n"}) {
    EXPECT_EQ(error(plain(authority_, name, 1), "not created by kiln"), "invalid_namespace") << name;
  }
  EXPECT_EQ(policy_.verify(plain(authority_, "Acme\x1b[2J", 1), kNow)->message.find('\x1b'), std::string::npos);
}

TEST_F(LivePolicy, RejectsUnknownKey) {
  EXPECT_EQ(error(plain(other_, "acme/vision", 3), "add it to the policy file"), "unknown_key");
  SignedStatement external = stated();
  external.certificate = Certificate::make(other_, host_.public_key(), "acme/live", kToday);
  EXPECT_EQ(error(external, short_id(other_.public_key().id())), "unknown_key");
}

TEST_F(LivePolicy, RejectsRevokedSigningAndCertifyingKeys) {
  const SignedStatement live = stated();
  const TrustPolicy before = policy_;
  policy_.revoke(host_.public_key().id());
  EXPECT_EQ(error(live, short_id(host_.public_key().id())), "revoked_key");
  policy_ = before;
  policy_.revoke(authority_.public_key().id());
  EXPECT_EQ(error(live, short_id(authority_.public_key().id())), "revoked_key");
  EXPECT_EQ(error(plain(authority_, "acme/vision", 3), "signed with another key"), "revoked_key");
  EXPECT_NE(rejected(authority_, "acme/vision").find("revoked"), std::string::npos) << "bundles too";
}

TEST_F(LivePolicy, DoesNotSuggestAddingRevokedKey) {
  policy_.revoke(other_.public_key().id());
  EXPECT_EQ(error(plain(other_, "acme/vision", 3), "revoked"), "revoked_key");
  EXPECT_EQ(error(plain(other_, "acme/live", 3), "revoked"), "revoked_key");
  SignedStatement external = stated();
  external.certificate = Certificate::make(other_, host_.public_key(), "acme/live", kToday);
  EXPECT_EQ(error(external, "revoked"), "revoked_key");
}

TEST_F(LivePolicy, RejectsKeyOutsideItsNamespaces) {
  EXPECT_EQ(error(plain(authority_, "other", 3), "add the namespace to this key"), "namespace_not_allowed");
  policy_.trust_live_namespace("other/live", 7);
  EXPECT_EQ(error(stated(kToday, "other/live", kToday, "other/live"), "add the namespace to this key"),
            "namespace_not_allowed");
}

TEST_F(LivePolicy, RejectsHostCertifiedForAnotherNamespace) {
  policy_.trust_live_namespace("acme/live2", 7);
  EXPECT_EQ(error(stated(kToday, "acme/live2"), "certify --namespace acme/live2"), "namespace_not_allowed");
  EXPECT_EQ(error(stated(kToday, "acme/live2", kToday, "acme/live2")), "trusted");
}

TEST_F(LivePolicy, RejectsSignatureOfOtherContent) {
  SignedStatement changed = stated();
  changed.statement.digest = sha256("other content");
  EXPECT_EQ(error(changed, "download it again"), "bad_signature");
  changed = stated();
  changed.statement.subject = "kiln entry 2";
  EXPECT_EQ(error(changed), "bad_signature");
  changed = stated();
  changed.certificate->last_day += 100;
  EXPECT_EQ(error(changed, short_id(authority_.public_key().id())), "bad_signature");
  changed = stated();
  changed.certificate->host = other_.public_key();
  EXPECT_EQ(error(changed), "bad_signature");
  changed = stated();
  changed.signature = other_.sign(changed.statement);
  EXPECT_EQ(error(changed, short_id(host_.public_key().id())), "bad_signature") << "by a key that was not certified";
  changed = stated();
  changed.signature->bytes[5] ^= 1;
  EXPECT_EQ(error(changed), "bad_signature");
}

TEST_F(LivePolicy, ChecksSignatureBeforeContent) {
  // Each of these would be rejected for its content if it were signed: a forger must not be able to choose that reason.
  policy_.revoke(host_.public_key().id());
  for (SignedStatement forged :
       {stated(), stated(kToday - 8), stated(kToday + 9), stated(kToday, "acme/live", kToday - 1),
        stated(kToday, "acme/vision", kToday, "acme/vision"), stated(kToday, "other", kToday, "other")}) {
    forged.signature->bytes[0] ^= 1;
    EXPECT_EQ(error(forged), "bad_signature");
  }
  for (SignedStatement forged : {plain(authority_, "other", 1), plain(authority_, "acme/live", 1)}) {
    forged.signature->bytes[0] ^= 1;
    EXPECT_EQ(error(forged), "bad_signature");
  }
}

TEST_F(LivePolicy, RejectsHostOutsideLiveNamespaces) {
  EXPECT_EQ(error(stated(kToday, "acme/vision", kToday, "acme/vision"), "[[live]]"), "live_namespace_not_trusted");
  policy_.add_key(authority_.public_key(), "*");
  policy_.trust_live_namespace("*", 7);
  EXPECT_EQ(error(stated(kToday, "other", kToday, "other"), "[[live]]"), "live_namespace_not_trusted")
      << "'*' names no live namespace";
  EXPECT_EQ(rejected(authority_, "acme/vision"), "") << "'*' makes no namespace live";
}

TEST_F(LivePolicy, RejectsUncertifiedKeyInLiveNamespace) {
  EXPECT_EQ(error(plain(host_, "acme/live", kToday), "remote.certificate"), "not_certified");
  EXPECT_EQ(error(plain(authority_, "acme/live", kToday), "kiln key certify"), "not_certified")
      << "not even the authority itself";
}

TEST_F(LivePolicy, RejectsExpiredCertificate) {
  EXPECT_EQ(error(stated(kToday, "acme/live", kToday)), "trusted");
  EXPECT_EQ(error(stated(kToday, "acme/live", kToday - 1), "certify it again"), "certificate_expired");
  EXPECT_EQ(error(stated(kToday - 3, "acme/live", kToday - 1)), "certificate_expired")
      << "also for statements signed before";
}

TEST_F(LivePolicy, TrustsConfiguredDaysAndOneDayAhead) {
  EXPECT_EQ(error(stated(kToday - 7)), "trusted");
  EXPECT_EQ(error(stated(kToday - 8), "signed it 8 days ago"), "epoch_too_old");
  EXPECT_EQ(error(stated(0)), "epoch_too_old");
  EXPECT_EQ(error(stated(kToday + 1)), "trusted");
  EXPECT_EQ(error(stated(kToday + 2), "clock"), "epoch_in_future");
  EXPECT_EQ(error(stated(~0ULL)), "epoch_in_future");
  policy_.trust_live_namespace("acme/*", 3);
  EXPECT_EQ(error(stated(kToday - 3)), "trusted");
  EXPECT_EQ(error(stated(kToday - 4)), "epoch_too_old") << "the lowest number of days applies";
}

TEST_F(LivePolicy, EnforcesMinimumEpochInLiveNamespaces) {
  policy_.require_epoch("acme/live", kToday - 1);
  EXPECT_EQ(error(stated(kToday - 1)), "trusted");
  EXPECT_EQ(error(stated(kToday - 2), "requires 19999"), "epoch_too_old");
}

TEST_F(LivePolicy, RejectsBundleInLiveNamespace) {
  EXPECT_NE(rejected(authority_, "acme/live").find("build the bundle in another namespace"), std::string::npos);
  EXPECT_EQ(rejected(authority_, "acme/vision"), "");
  policy_.allow_unsigned();
  EXPECT_FALSE(policy_.verify_bundle({"kiln bundle 1", "acme/live", 5, {}}, nullptr).has_value());
  EXPECT_TRUE(policy_.verify_bundle({"kiln bundle 1", "acme/vision", 5, {}}, nullptr).has_value());
}

TEST_F(LivePolicy, ReasonCodesAreDistinct) {
  std::set<std::string> words;
  for (unsigned char reason = 0; reason <= static_cast<unsigned char>(Reason::CertificateExpired); ++reason) {
    words.insert(to_string(static_cast<Reason>(reason)));
  }
  EXPECT_EQ(words.size(), 11U);
}

TEST_F(LivePolicy, MergesLowestDaysAndAllRevocations) {
  TrustPolicy other;
  other.trust_live_namespace("acme/live", 3);
  other.trust_live_namespace("acme/more", 9);
  other.revoke(other_.public_key().id());
  policy_.add(other);
  EXPECT_EQ(error(stated(kToday - 4)), "epoch_too_old");
  EXPECT_EQ(error(stated(kToday - 9, "acme/more", kToday, "acme/more")), "trusted");
  EXPECT_EQ(error(plain(other_, "acme/vision", 3)), "revoked_key");
}

TEST_F(LivePolicy, FingerprintIgnoresOrder) {
  TrustPolicy one = policy_;
  TrustPolicy two;
  one.add_key(other_.public_key(), "tools");
  two.add_key(other_.public_key(), "tools");
  two.add(policy_);
  EXPECT_EQ(one.fingerprint(), two.fingerprint());
  EXPECT_NE(one.fingerprint(), policy_.fingerprint());

  std::set<Digest> prints = {policy_.fingerprint(), TrustPolicy().fingerprint()};
  const auto with = [&](auto change) {
    TrustPolicy changed = policy_;
    change(changed);
    prints.insert(changed.fingerprint());
  };
  with([&](TrustPolicy& policy) { policy.add_key(other_.public_key(), "acme/*"); });
  with([&](TrustPolicy& policy) { policy.add_key(authority_.public_key(), "acme"); });
  with([&](TrustPolicy& policy) { policy.require_epoch("acme/x", 7); });
  with([&](TrustPolicy& policy) { policy.trust_live_namespace("acme/x", 7); });
  with([&](TrustPolicy& policy) { policy.trust_live_namespace("acme/live", 6); });
  with([&](TrustPolicy& policy) { policy.revoke(host_.public_key().id()); });
  with([&](TrustPolicy& policy) { policy.revoke(other_.public_key().id()); });
  with([&](TrustPolicy& policy) { policy.allow_unsigned(); });
  EXPECT_EQ(prints.size(), 10U);
}

TEST(LivePattern, ExcludesWildcardForAll) {
  for (const char* text : {"acme", "acme/live", "acme/*"}) EXPECT_TRUE(is_live_pattern(text)) << text;
  for (const char* text : {"*", "", "acme*", "Acme"}) EXPECT_FALSE(is_live_pattern(text)) << text;
}

}  // namespace
}  // namespace kiln::test
