// SPDX-License-Identifier: Apache-2.0
#include "trust/signer.hpp"

#include <string>

#include <gtest/gtest.h>

#include "base/hash.hpp"

namespace kiln::test {
namespace {

constexpr std::chrono::nanoseconds kSomeDay = std::chrono::hours(24 * 20000 + 5);

TEST(Signer, CiSignerUsesGivenNamespaceAndEpoch) {
  SecretKey key = SecretKey::generate();
  const PublicKey open = key.public_key();
  const auto signer = Signer::ci(std::move(key), "acme/vision", 7);
  ASSERT_TRUE(signer.has_value()) << signer.error().message;
  EXPECT_FALSE(signer->is_live());
  EXPECT_EQ(signer->name_space(), "acme/vision");
  const SignedStatement stated = signer->sign("kiln entry 1", sha256("content"), kSomeDay);
  EXPECT_EQ(stated.statement.subject, "kiln entry 1");
  EXPECT_EQ(stated.statement.name_space, "acme/vision");
  EXPECT_EQ(stated.statement.epoch, 7U);
  EXPECT_EQ(stated.statement.digest, sha256("content"));
  EXPECT_FALSE(stated.certificate.has_value());
  EXPECT_TRUE(verify_signature(open, *stated.signature, stated.statement));
}

TEST(Signer, LiveSignerUsesDayAndCertificate) {
  const SecretKey authority = SecretKey::generate();
  SecretKey key = SecretKey::generate();
  const PublicKey open = key.public_key();
  const Certificate certificate = Certificate::make(authority, open, "acme/live", 20030);
  const auto signer = Signer::live(std::move(key), certificate);
  ASSERT_TRUE(signer.has_value()) << signer.error().message;
  EXPECT_TRUE(signer->is_live());
  EXPECT_EQ(signer->name_space(), "acme/live");
  const SignedStatement stated = signer->sign("kiln entry 1", sha256("content"), kSomeDay);
  EXPECT_EQ(stated.statement.name_space, "acme/live");
  EXPECT_EQ(stated.statement.epoch, 20000U);
  EXPECT_EQ(stated.certificate->text(), certificate.text());
  EXPECT_TRUE(verify_signature(open, *stated.signature, stated.statement));
}

TEST(Signer, RejectsOtherHostsCertificateAndInvalidNamespace) {
  const SecretKey authority = SecretKey::generate();
  const SecretKey host = SecretKey::generate();
  const auto other =
      Signer::live(SecretKey::generate(), Certificate::make(authority, host.public_key(), "acme/live", 20030));
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, Code::InvalidArgument);
  EXPECT_NE(other.error().message.find(short_id(host.public_key().id())), std::string::npos);
  EXPECT_NE(other.error().message.find("kiln key certify"), std::string::npos);
  EXPECT_EQ(Signer::ci(SecretKey::generate(), "acme/*", 7).error().code, Code::InvalidArgument);
  EXPECT_EQ(Signer::ci(SecretKey::generate(), "", 7).error().code, Code::InvalidArgument);
}

}  // namespace
}  // namespace kiln::test
