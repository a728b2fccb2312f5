#include <gtest/gtest.h>

#include "bundle/forge.hpp"

namespace kiln::test {
namespace {

/// A bundle of somebody's and a policy that believes him.
class BundleTrust : public testing::Test {
 protected:
  BundleTrust() { policy_.trust(key_.public_key(), "acme/*"); }

  std::string refusal(const std::string& bytes, const TrustPolicy& policy) {
    const auto bundle = open_bytes(bytes, &policy);
    if (bundle) return "believed";
    EXPECT_EQ(bundle.error().code, Code::Refused) << bundle.error().message;
    return bundle.error().message;
  }

  const std::vector<BundleMember> members_ = {member_of("a.cu", Target::sm(80))};
  const BundleWriter::Options options_{.name_space = "acme/vision", .epoch = 5};
  const SecretKey key_ = SecretKey::generate();
  TrustPolicy policy_;
};

TEST_F(BundleTrust, BelievesABundleOfAKeyThatMaySpeakForItsNamespace) {
  const auto bundle = open_bytes(image_of(members_, &key_, options_).whole(), &policy_);
  ASSERT_TRUE(bundle.ok()) << bundle.error().message;
  EXPECT_TRUE((*bundle)->get(members_[0].key).value().has_value());
  EXPECT_EQ((*bundle)->header().name_space, "acme/vision");
  EXPECT_EQ((*bundle)->header().epoch, 5u);
}

TEST_F(BundleTrust, SignsTheSameBytesAlike) {
  EXPECT_TRUE(image_of(members_, &key_, options_).whole() == image_of(members_, &key_, options_).whole());
}

TEST_F(BundleTrust, RefusesWhatNobodySigned) {
  EXPECT_NE(refusal(image_of(members_, nullptr, options_).whole(), policy_), "believed");
  TrustPolicy lenient;
  lenient.allow_unsigned();
  EXPECT_EQ(refusal(image_of(members_, nullptr, options_).whole(), lenient), "believed");
}

TEST_F(BundleTrust, RefusesAKeyThatNobodyKnows) {
  const SecretKey stranger = SecretKey::generate();
  EXPECT_NE(refusal(image_of(members_, &stranger, options_).whole(), policy_), "believed");
}

TEST_F(BundleTrust, RefusesANamespaceForWhichTheKeyMayNotSpeak) {
  EXPECT_NE(refusal(image_of(members_, &key_, {.name_space = "other/vision", .epoch = 5}).whole(), policy_),
            "believed");
}

TEST_F(BundleTrust, RefusesAnOlderEpoch) {
  policy_.require_epoch("acme/*", 5);
  EXPECT_EQ(refusal(image_of(members_, &key_, options_).whole(), policy_), "believed");
  policy_.require_epoch("acme/*", 6);
  EXPECT_NE(refusal(image_of(members_, &key_, options_).whole(), policy_), "believed");
}

TEST_F(BundleTrust, RefusesASignatureOverAnotherBundle) {
  const BundleImage signed_one = image_of(members_, &key_, options_);
  Forge forge({member_of("evil.cu", Target::sm(80))});
  forge.header.name_space = options_.name_space;
  forge.header.epoch = options_.epoch;
  forge.spoil = [&](std::string& head) {
    // Signer and signature of the other, over a header whose digest is right.
    const std::size_t at = forge.signed_size() + 32;
    head.replace(at, 96, signed_one.head.substr(at, 96));
  };
  EXPECT_NE(refusal(forge.build(), policy_), "believed");
}

TEST_F(BundleTrust, RefusesAnEpochThatWasRaisedWithoutTheKey) {
  std::string bytes = image_of(members_, &key_, options_).whole();
  bytes[24] = 6;  // the epoch's lowest byte
  const auto damaged = open_bytes(bytes, &policy_);
  EXPECT_EQ(damaged.error().code, Code::Corrupt);
  // With the digest made right, too, it is the signature that tells.
  const std::size_t size = Forge::kPageEntries + 72 + 2 * 8;
  const Digest digest = sha256(std::string_view(bytes).substr(0, size));
  std::memcpy(bytes.data() + size, digest.bytes.data(), digest.bytes.size());
  EXPECT_NE(refusal(bytes, policy_), "believed");
}

TEST_F(BundleTrust, LooksAtNothingButTheHeaderBeforeItBelieves) {
  // All behind the header is gone: whoever looked there would say so.
  const std::string header = image_of(members_, nullptr, options_).head;
  EXPECT_NE(refusal(header, policy_), "believed");
}

}  // namespace
}  // namespace kiln::test
