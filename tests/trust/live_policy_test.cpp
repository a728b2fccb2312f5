#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/hash.hpp"
#include "trust/policy.hpp"
#include "trust/signer.hpp"

namespace kiln::test {
namespace {

using Why = Doubt::Why;

constexpr std::uint64_t kToday = 20000;
constexpr std::chrono::nanoseconds kNow = std::chrono::hours(24 * kToday + 12);
constexpr const char* kSubject = "kiln entry 1";

/// A policy that believes an authority for everything below `acme`, and its hosts in `acme/live` for a week.
class LivePolicy : public testing::Test {
 protected:
  LivePolicy() {
    policy_.trust(authority_.public_key(), "acme/*");
    policy_.accept_live("acme/live", 7);
  }

  /// Signed by the host itself, for a day and a namespace, with a certificate for any.
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

  /// The word for why it is doubted, or "believed"; the sentence must have `part`, which says what to do.
  std::string doubt(const SignedStatement& stated, const std::string& part = {}) const {
    const std::optional<Doubt> found = policy_.doubt(stated, kNow);
    if (!found) return "believed";
    EXPECT_NE(found->message.find(part), std::string::npos) << found->message;
    for (const SecretKey* key : {&authority_, &host_, &other_}) {
      EXPECT_EQ(found->message.find(key->public_key().text().substr(14)), std::string::npos) << found->message;
      EXPECT_EQ(found->message.find(key->public_key().id().hex().substr(0, 17)), std::string::npos) << found->message;
    }
    return to_string(found->why);
  }
  std::string refused(const SecretKey& key, const std::string& name_space) const {
    const Statement statement = {"kiln bundle 1", name_space, 5, sha256("content")};
    const Signature signature = key.sign(statement);
    const Status status = policy_.admit(statement, &signature);
    return status.ok() ? std::string() : status.error().message;
  }

  const SecretKey authority_ = SecretKey::generate();
  const SecretKey host_ = SecretKey::generate();
  const SecretKey other_ = SecretKey::generate();
  TrustPolicy policy_;
};

TEST_F(LivePolicy, BelievesACertifiedHostInANamedNamespace) { EXPECT_EQ(doubt(stated()), "believed"); }

TEST_F(LivePolicy, BelievesACiSignerInTheOtherNamespaces) {
  EXPECT_EQ(doubt(plain(authority_, "acme/vision", 3)), "believed");
  policy_.require_epoch("acme/vision", 4);
  EXPECT_EQ(doubt(plain(authority_, "acme/vision", 3), "get a newer one"), "old_epoch");
}

TEST_F(LivePolicy, DoubtsWhatNobodySignedEvenWhereBundlesNeedNoSignature) {
  policy_.allow_unsigned();
  for (const char* name : {"acme/live", "acme/vision"}) {
    SignedStatement nobody = stated(kToday, name);
    nobody.signature.reset();
    EXPECT_EQ(doubt(nobody, "remote.sign"), "unsigned") << name;
    nobody.certificate.reset();
    EXPECT_EQ(doubt(nobody, "remote.sign"), "unsigned") << name;
  }
}

TEST_F(LivePolicy, DoubtsANamespaceThatIsNoneAndDoesNotRepeatIt) {
  policy_.trust(authority_.public_key(), "*");
  for (const char* name : {"", "Acme/Live", "acme/*", "acme\n"}) {
    EXPECT_EQ(doubt(plain(authority_, name, 1), "not made by kiln"), "not_a_namespace") << name;
  }
  EXPECT_EQ(policy_.doubt(plain(authority_, "Acme\x1b[2J", 1), kNow)->message.find('\x1b'), std::string::npos);
}

TEST_F(LivePolicy, DoubtsAKeyThatItDoesNotKnow) {
  EXPECT_EQ(doubt(plain(other_, "acme/vision", 3), "add it to the policy file"), "unknown_key");
  SignedStatement foreign = stated();
  foreign.certificate = Certificate::make(other_, host_.public_key(), "acme/live", kToday);
  EXPECT_EQ(doubt(foreign, short_id(other_.public_key().id())), "unknown_key");
}

TEST_F(LivePolicy, DoubtsARevokedKeyWhetherItSignedOrCertified) {
  const SignedStatement live = stated();
  const TrustPolicy before = policy_;
  policy_.revoke(host_.public_key().id());
  EXPECT_EQ(doubt(live, short_id(host_.public_key().id())), "revoked_key");
  policy_ = before;
  policy_.revoke(authority_.public_key().id());
  EXPECT_EQ(doubt(live, short_id(authority_.public_key().id())), "revoked_key");
  EXPECT_EQ(doubt(plain(authority_, "acme/vision", 3), "sign it again"), "revoked_key");
  EXPECT_NE(refused(authority_, "acme/vision").find("revoked"), std::string::npos) << "bundles too";
}

TEST_F(LivePolicy, NeverAdvisesToAddARevokedKeyThatWasTakenOut) {
  policy_.revoke(other_.public_key().id());
  EXPECT_EQ(doubt(plain(other_, "acme/vision", 3), "revoked"), "revoked_key");
  EXPECT_EQ(doubt(plain(other_, "acme/live", 3), "revoked"), "revoked_key");
  SignedStatement foreign = stated();
  foreign.certificate = Certificate::make(other_, host_.public_key(), "acme/live", kToday);
  EXPECT_EQ(doubt(foreign, "revoked"), "revoked_key");
}

TEST_F(LivePolicy, DoubtsAKeyInANamespaceThatItMayNotSpeakFor) {
  EXPECT_EQ(doubt(plain(authority_, "other", 3), "add the namespace to the key"), "other_namespace");
  policy_.accept_live("other/live", 7);
  EXPECT_EQ(doubt(stated(kToday, "other/live", kToday, "other/live"), "add the namespace to the key"),
            "other_namespace");
}

TEST_F(LivePolicy, DoubtsAHostThatWasCertifiedForAnotherNamespace) {
  policy_.accept_live("acme/live2", 7);
  EXPECT_EQ(doubt(stated(kToday, "acme/live2"), "certify --namespace acme/live2"), "other_namespace");
  EXPECT_EQ(doubt(stated(kToday, "acme/live2", kToday, "acme/live2")), "believed");
}

TEST_F(LivePolicy, DoubtsSignaturesOverAnythingElse) {
  SignedStatement changed = stated();
  changed.statement.digest = sha256("other content");
  EXPECT_EQ(doubt(changed, "get it again"), "bad_signature");
  changed = stated();
  changed.statement.subject = "kiln entry 2";
  EXPECT_EQ(doubt(changed), "bad_signature");
  changed = stated();
  changed.certificate->last_day += 100;
  EXPECT_EQ(doubt(changed, short_id(authority_.public_key().id())), "bad_signature");
  changed = stated();
  changed.certificate->host = other_.public_key();
  EXPECT_EQ(doubt(changed), "bad_signature");
  changed = stated();
  changed.signature = other_.sign(changed.statement);
  EXPECT_EQ(doubt(changed, short_id(host_.public_key().id())), "bad_signature") << "by another than was certified";
  changed = stated();
  changed.signature->bytes[5] ^= 1;
  EXPECT_EQ(doubt(changed), "bad_signature");
}

TEST_F(LivePolicy, DoubtsTheSignatureBeforeAnythingThatIsStated) {
  // Each of these would be doubted for what it says, had it been signed: a forger does not choose that.
  policy_.revoke(host_.public_key().id());
  for (SignedStatement forged :
       {stated(), stated(kToday - 8), stated(kToday + 9), stated(kToday, "acme/live", kToday - 1),
        stated(kToday, "acme/vision", kToday, "acme/vision"), stated(kToday, "other", kToday, "other")}) {
    forged.signature->bytes[0] ^= 1;
    EXPECT_EQ(doubt(forged), "bad_signature");
  }
  for (SignedStatement forged : {plain(authority_, "other", 1), plain(authority_, "acme/live", 1)}) {
    forged.signature->bytes[0] ^= 1;
    EXPECT_EQ(doubt(forged), "bad_signature");
  }
}

TEST_F(LivePolicy, DoubtsAHostInANamespaceThatItDoesNotNameAsLive) {
  EXPECT_EQ(doubt(stated(kToday, "acme/vision", kToday, "acme/vision"), "[[live]]"), "live_not_named");
  policy_.trust(authority_.public_key(), "*");
  policy_.accept_live("*", 7);
  EXPECT_EQ(doubt(stated(kToday, "other", kToday, "other"), "[[live]]"), "live_not_named") << "'*' names none";
  EXPECT_EQ(refused(authority_, "acme/vision"), "") << "and makes none live";
}

TEST_F(LivePolicy, DoubtsWhoeverIsNotCertifiedInALiveNamespace) {
  EXPECT_EQ(doubt(plain(host_, "acme/live", kToday), "remote.certificate"), "not_certified");
  EXPECT_EQ(doubt(plain(authority_, "acme/live", kToday), "kiln key certify"), "not_certified")
      << "not even the authority itself";
}

TEST_F(LivePolicy, DoubtsACertificateAfterItsLastDay) {
  EXPECT_EQ(doubt(stated(kToday, "acme/live", kToday)), "believed");
  EXPECT_EQ(doubt(stated(kToday, "acme/live", kToday - 1), "certify it again"), "certificate_expired");
  EXPECT_EQ(doubt(stated(kToday - 3, "acme/live", kToday - 1)), "certificate_expired")
      << "also for what was signed before";
}

TEST_F(LivePolicy, BelievesADayForAsLongAsItSaysAndOneDayAhead) {
  EXPECT_EQ(doubt(stated(kToday - 7)), "believed");
  EXPECT_EQ(doubt(stated(kToday - 8), "signed it 8 days ago"), "old_epoch");
  EXPECT_EQ(doubt(stated(0)), "old_epoch");
  EXPECT_EQ(doubt(stated(kToday + 1)), "believed");
  EXPECT_EQ(doubt(stated(kToday + 2), "clock"), "future_epoch");
  EXPECT_EQ(doubt(stated(~0ULL)), "future_epoch");
  policy_.accept_live("acme/*", 3);
  EXPECT_EQ(doubt(stated(kToday - 3)), "believed");
  EXPECT_EQ(doubt(stated(kToday - 4)), "old_epoch") << "of several the fewest days count";
}

TEST_F(LivePolicy, AsksForALeastEpochOfLiveNamespacesToo) {
  policy_.require_epoch("acme/live", kToday - 1);
  EXPECT_EQ(doubt(stated(kToday - 1)), "believed");
  EXPECT_EQ(doubt(stated(kToday - 2), "wants 19999"), "old_epoch");
}

TEST_F(LivePolicy, BelievesNoBundleInALiveNamespace) {
  EXPECT_NE(refused(authority_, "acme/live").find("build it in another one"), std::string::npos);
  EXPECT_EQ(refused(authority_, "acme/vision"), "");
  policy_.allow_unsigned();
  EXPECT_FALSE(policy_.admit({"kiln bundle 1", "acme/live", 5, {}}, nullptr).ok());
  EXPECT_TRUE(policy_.admit({"kiln bundle 1", "acme/vision", 5, {}}, nullptr).ok());
}

TEST_F(LivePolicy, HasAWordOfItsOwnForEachDoubt) {
  std::set<std::string> words;
  for (unsigned char why = 0; why <= static_cast<unsigned char>(Why::CertificateExpired); ++why) {
    words.insert(to_string(static_cast<Why>(why)));
  }
  EXPECT_EQ(words.size(), 11U);
}

TEST_F(LivePolicy, AddsUpWithTheFewestDaysAndEveryRevocation) {
  TrustPolicy other;
  other.accept_live("acme/live", 3);
  other.accept_live("acme/more", 9);
  other.revoke(other_.public_key().id());
  policy_.add(other);
  EXPECT_EQ(doubt(stated(kToday - 4)), "old_epoch");
  EXPECT_EQ(doubt(stated(kToday - 9, "acme/more", kToday, "acme/more")), "believed");
  EXPECT_EQ(doubt(plain(other_, "acme/vision", 3)), "revoked_key");
}

TEST_F(LivePolicy, HasAFingerprintOfWhatItSaysInWhateverOrder) {
  TrustPolicy one = policy_;
  TrustPolicy two;
  one.trust(other_.public_key(), "tools");
  two.trust(other_.public_key(), "tools");
  two.add(policy_);
  EXPECT_EQ(one.fingerprint(), two.fingerprint());
  EXPECT_NE(one.fingerprint(), policy_.fingerprint());

  std::set<Digest> prints = {policy_.fingerprint(), TrustPolicy().fingerprint()};
  const auto with = [&](auto change) {
    TrustPolicy changed = policy_;
    change(changed);
    prints.insert(changed.fingerprint());
  };
  with([&](TrustPolicy& policy) { policy.trust(other_.public_key(), "acme/*"); });
  with([&](TrustPolicy& policy) { policy.trust(authority_.public_key(), "acme"); });
  with([&](TrustPolicy& policy) { policy.require_epoch("acme/x", 7); });
  with([&](TrustPolicy& policy) { policy.accept_live("acme/x", 7); });
  with([&](TrustPolicy& policy) { policy.accept_live("acme/live", 6); });
  with([&](TrustPolicy& policy) { policy.revoke(host_.public_key().id()); });
  with([&](TrustPolicy& policy) { policy.revoke(other_.public_key().id()); });
  with([&](TrustPolicy& policy) { policy.allow_unsigned(); });
  EXPECT_EQ(prints.size(), 10U);
}

TEST(LivePattern, IsAnyButAll) {
  for (const char* text : {"acme", "acme/live", "acme/*"}) EXPECT_TRUE(is_live_pattern(text)) << text;
  for (const char* text : {"*", "", "acme*", "Acme"}) EXPECT_FALSE(is_live_pattern(text)) << text;
}

}  // namespace
}  // namespace kiln::test
