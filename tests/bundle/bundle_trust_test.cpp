// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "bundle/bundle_forger.hpp"

namespace kiln::test {
namespace {

/// A signed bundle and a policy that trusts its key.
class BundleTrust : public testing::Test {
 protected:
  BundleTrust() { policy_.add_key(key_.public_key(), "acme/*"); }

  std::string rejection(const std::string& bytes, const TrustPolicy& policy) {
    const auto bundle = open_bytes(bytes, &policy);
    if (bundle) return "trusted";
    EXPECT_EQ(bundle.error().code, Code::Denied) << bundle.error().message;
    return bundle.error().message;
  }

  const std::vector<BundleMember> members_ = {member_of("a.cu", Target::sm(80))};
  const BundleWriter::Options options_{.name_space = "acme/vision", .epoch = 5};
  const SecretKey key_ = SecretKey::generate();
  TrustPolicy policy_;
};

TEST_F(BundleTrust, TrustsKeyThatIsAllowedForNamespace) {
  const auto bundle = open_bytes(image_of(members_, &key_, options_).to_file(), &policy_);
  ASSERT_TRUE(bundle.has_value()) << bundle.error().message;
  EXPECT_TRUE((*bundle)->get(members_[0].key, {}).value().has_value());
  EXPECT_EQ((*bundle)->header().name_space, "acme/vision");
  EXPECT_EQ((*bundle)->header().epoch, 5u);
}

TEST_F(BundleTrust, SignatureIsDeterministic) {
  EXPECT_TRUE(image_of(members_, &key_, options_).to_file() == image_of(members_, &key_, options_).to_file());
}

TEST_F(BundleTrust, RejectsUnsignedBundle) {
  EXPECT_NE(rejection(image_of(members_, nullptr, options_).to_file(), policy_), "trusted");
  TrustPolicy lenient;
  lenient.allow_unsigned();
  EXPECT_EQ(rejection(image_of(members_, nullptr, options_).to_file(), lenient), "trusted");
}

TEST_F(BundleTrust, RejectsUnknownKey) {
  const SecretKey unknown_key = SecretKey::generate();
  EXPECT_NE(rejection(image_of(members_, &unknown_key, options_).to_file(), policy_), "trusted");
}

TEST_F(BundleTrust, RejectsKeyThatIsNotAllowedForNamespace) {
  EXPECT_NE(rejection(image_of(members_, &key_, {.name_space = "other/vision", .epoch = 5}).to_file(), policy_),
            "trusted");
}

TEST_F(BundleTrust, RejectsOlderEpoch) {
  policy_.require_epoch("acme/*", 5);
  EXPECT_EQ(rejection(image_of(members_, &key_, options_).to_file(), policy_), "trusted");
  policy_.require_epoch("acme/*", 6);
  EXPECT_NE(rejection(image_of(members_, &key_, options_).to_file(), policy_), "trusted");
}

TEST_F(BundleTrust, RejectsSignatureOfAnotherBundle) {
  const BundleImage signed_one = image_of(members_, &key_, options_);
  Forge forge({member_of("evil.cu", Target::sm(80))});
  forge.header.name_space = options_.name_space;
  forge.header.epoch = options_.epoch;
  forge.discard = [&](std::string& head) {
    // Signer and signature of the other bundle, over a header with a correct digest.
    const std::size_t at = forge.signed_size() + 32;
    head.replace(at, 96, signed_one.head.substr(at, 96));
  };
  EXPECT_NE(rejection(forge.build(), policy_), "trusted");
}

TEST_F(BundleTrust, RejectsEpochRaisedWithoutKey) {
  std::string bytes = image_of(members_, &key_, options_).to_file();
  bytes[24] = 6;  // the lowest byte of the epoch
  const auto corrupt = open_bytes(bytes, &policy_);
  EXPECT_EQ(corrupt.error().code, Code::Corrupt);
  // With a correct digest, only the signature reveals the change.
  const std::size_t size = Forge::kPageEntries + 72 + 2 * 8;
  const Digest digest = sha256(std::string_view(bytes).substr(0, size));
  std::memcpy(bytes.data() + size, digest.bytes.data(), digest.bytes.size());
  EXPECT_NE(rejection(bytes, policy_), "trusted");
}

TEST_F(BundleTrust, ReadsOnlyHeaderBeforeTrustCheck) {
  // Everything after the header is missing: reading it would cause a different error.
  const std::string header = image_of(members_, nullptr, options_).head;
  EXPECT_NE(rejection(header, policy_), "trusted");
}

}  // namespace
}  // namespace kiln::test
