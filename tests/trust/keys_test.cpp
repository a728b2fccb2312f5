// SPDX-License-Identifier: Apache-2.0
#include "trust/keys.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/hash.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

const Statement kStatement = {"kiln bundle 1", "acme/vision", 7, sha256("content")};

// The first test vector of RFC 8032 (section 7.1): a seed and its public key.
constexpr const char* kSeed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
constexpr const char* kPublic = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

/// Writes a file that only this user can read.
std::string secret_file(const TemporaryDirectory& directory, const std::string& text) {
  const std::string path = directory.path("some.key");
  write_text(path, text);
  EXPECT_EQ(::chmod(path.c_str(), 0600), 0);
  return path;
}

TEST(SecretKey, SignatureVerifiesWithPublicKey) {
  const SecretKey key = SecretKey::generate();
  const Signature signature = key.sign(kStatement);
  EXPECT_EQ(signature.key, key.public_key().id());
  EXPECT_TRUE(verify_signature(key.public_key(), signature, kStatement));
  Statement other = kStatement;
  other.epoch = 8;
  EXPECT_FALSE(verify_signature(key.public_key(), signature, other));
  EXPECT_FALSE(verify_signature(SecretKey::generate().public_key(), signature, kStatement));
}

TEST(SecretKey, MatchesRfc8032TestVector) {
  const TemporaryDirectory directory;
  const auto key = SecretKey::read(secret_file(directory, std::string("kiln-secret-1:") + kSeed + "\n"));
  ASSERT_TRUE(key.has_value()) << key.error().message;
  EXPECT_EQ(key->public_key().text(), std::string("kiln-public-1:") + kPublic);
}

TEST(SecretKey, GeneratesDistinctKeys) {
  EXPECT_NE(SecretKey::generate().public_key().text(), SecretKey::generate().public_key().text());
}

TEST(SecretKey, RoundTripsThroughPrivateFile) {
  const TemporaryDirectory directory;
  const mode_t before = ::umask(0);
  const SecretKey key = SecretKey::generate();
  const Status written = key.write(directory.path("kiln.key"));
  ::umask(before);
  ASSERT_TRUE(written.has_value()) << written.error().message;
  struct stat status;
  ASSERT_EQ(::stat(directory.path("kiln.key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  EXPECT_EQ(status.st_size, 79);
  ASSERT_EQ(::symlink(directory.path("kiln.key").c_str(), directory.path("link").c_str()), 0);
  for (const char* name : {"kiln.key", "link"}) {
    const auto read = SecretKey::read(directory.path(name));
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->public_key(), key.public_key());
  }
}

TEST(SecretKey, DoesNotOverwriteFile) {
  const TemporaryDirectory directory;
  write_text(directory.path("kiln.key"), "mine");
  const Status written = SecretKey::generate().write(directory.path("kiln.key"));
  ASSERT_FALSE(written.has_value());
  EXPECT_NE(written.error().message.find("never overwritten"), std::string::npos);
  EXPECT_EQ(read_text(directory.path("kiln.key")), "mine");
  ASSERT_EQ(::symlink(directory.path("elsewhere").c_str(), directory.path("link").c_str()), 0);
  EXPECT_FALSE(SecretKey::generate().write(directory.path("link")).has_value()) << "must not write through a link";
  EXPECT_FALSE(SecretKey::generate().write(directory.path("none/kiln.key")).has_value());
}

TEST(SecretKey, RejectsFileAccessibleToOthers) {
  const TemporaryDirectory directory;
  const std::string path = secret_file(directory, std::string("kiln-secret-1:") + kSeed + "\n");
  for (const mode_t mode : {0640U, 0604U, 0620U, 0602U, 0610U, 0644U}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    const auto key = SecretKey::read(path);
    ASSERT_FALSE(key.has_value()) << mode;
    EXPECT_EQ(key.error().code, Code::Denied);
    EXPECT_NE(key.error().message.find("chmod 600 '" + path), std::string::npos) << key.error().message;
  }
  ASSERT_EQ(::chmod(path.c_str(), 0400), 0);
  EXPECT_TRUE(SecretKey::read(path).has_value());
}

TEST(SecretKey, RejectsInvalidContentWithoutRepeatingIt) {
  const TemporaryDirectory directory;
  const std::string seed = kSeed;
  for (const std::string& text :
       {std::string(), std::string("\n"), seed, "kiln-secret-1:" + seed.substr(1), "kiln-secret-1:" + seed + "0",
        "kiln-secret-1:" + seed + "\n\n", "kiln-secret-1:" + seed + "\nmore", "kiln-secret-1:x" + seed.substr(1),
        " kiln-secret-1:" + seed, "kiln-secret-2:" + seed, "kiln-public-1:" + seed, std::string(1 << 16, 'a')}) {
    const auto key = SecretKey::read(secret_file(directory, text));
    ASSERT_FALSE(key.has_value()) << text;
    EXPECT_EQ(key.error().code, Code::InvalidArgument);
    for (const std::string& part : {seed.substr(1, 8), seed.substr(56), std::string("aaaa"), std::string("more")}) {
      EXPECT_EQ(key.error().message.find(part), std::string::npos) << key.error().message;
    }
  }
  EXPECT_NE(SecretKey::read(secret_file(directory, "kiln-secret-2:" + seed)).error().message.find("version"),
            std::string::npos);
  EXPECT_NE(SecretKey::read(secret_file(directory, "kiln-public-1:" + seed)).error().message.find("public key"),
            std::string::npos);
}

TEST(SecretKey, RejectsNonRegularFiles) {
  const TemporaryDirectory directory;
  EXPECT_EQ(SecretKey::read(directory.path("none")).error().code, Code::Io);
  EXPECT_FALSE(SecretKey::read(directory.path()).has_value());
  ASSERT_EQ(::mkfifo(directory.path("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(SecretKey::read(directory.path("pipe")).has_value()) << "must not wait for a pipe";
}

TEST(SecretKey, MovedFromKeyIsWiped) {
  static_assert(sizeof(SecretKey) == 32);
  const unsigned char nothing[sizeof(SecretKey)] = {};
  SecretKey first = SecretKey::generate();
  const PublicKey expected = first.public_key();
  SecretKey second = std::move(first);
  // NOLINTNEXTLINE(bugprone-use-after-move): checks the moved-from object
  EXPECT_EQ(std::memcmp(static_cast<const void*>(&first), nothing, sizeof nothing), 0);
  SecretKey third = SecretKey::generate();
  third = std::move(second);
  EXPECT_EQ(std::memcmp(static_cast<const void*>(&second), nothing, sizeof nothing), 0);
  EXPECT_EQ(third.public_key(), expected);
  alignas(SecretKey) unsigned char room[sizeof(SecretKey)];
  auto* const fourth = new (room) SecretKey(std::move(third));
  EXPECT_EQ(fourth->public_key(), expected);
  fourth->~SecretKey();
  EXPECT_EQ(std::memcmp(room, nothing, sizeof nothing), 0);
}

TEST(PublicKey, TextRoundTrips) {
  const PublicKey key = SecretKey::generate().public_key();
  const auto read = PublicKey::parse(key.text());
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, key);
  EXPECT_EQ(key.text().size(), 78U);
  EXPECT_EQ(key.id().digest, sha256(key.bytes));
}

TEST(PublicKey, RejectsInvalidText) {
  const std::string digits = kPublic;
  for (const std::string& text :
       {std::string(), digits, "kiln-public-1:" + digits.substr(1), "kiln-public-1:" + digits + "0",
        "kiln-public-1:" + digits + "\n", "kiln-public-1:g" + digits.substr(1), "kiln-public-2:" + digits,
        " kiln-public-1:" + digits}) {
    EXPECT_FALSE(PublicKey::parse(text).has_value()) << text;
  }
  EXPECT_NE(PublicKey::parse("kiln-public-2:" + digits).error().message.find("version"), std::string::npos);
  const std::string secret = PublicKey::parse("kiln-secret-1:" + digits).error().message;
  EXPECT_NE(secret.find("secret key"), std::string::npos);
  EXPECT_EQ(secret.find(digits.substr(0, 8)), std::string::npos);
}

TEST(PublicKey, SmallOrderKeysVerifyNothing) {
  // Low-order points, for which signatures can verify without a secret key.
  const SecretKey key = SecretKey::generate();
  for (const std::uint8_t first : {0, 1}) {
    PublicKey weak;
    weak.bytes[0] = first;
    Signature signature = key.sign(kStatement);
    signature.key = weak.id();
    signature.bytes.fill(0);
    signature.bytes[0] = 1;
    EXPECT_FALSE(verify_signature(weak, signature, kStatement));
  }
}

}  // namespace
}  // namespace kiln::test
