// SPDX-License-Identifier: Apache-2.0
#include "trust/signed_statement.hpp"

#include <string>

#include <gtest/gtest.h>

#include "base/hash.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

SignedStatement stated_by(const SecretKey& key) {
  SignedStatement stated;
  stated.statement = {"kiln entry 1", "acme/live", 20000, sha256("content")};
  stated.signature = key.sign(stated.statement);
  return stated;
}

std::string raw(const Digest& digest) { return {digest.bytes.begin(), digest.bytes.end()}; }
std::string raw(const Signature& signature) {
  return raw(signature.key.digest) + std::string(signature.bytes.begin(), signature.bytes.end());
}
const std::string kNamed = std::string("\x09\0\0\0", 4) + "acme/live";

/// Returns the error code of decoding, or "read".
std::string outcome_of(std::string_view bytes) {
  const auto read = SignedStatement::decode(bytes, "kiln entry 1");
  return read ? "read" : to_string(read.error().code);
}

class Stated : public testing::Test {
 protected:
  const SecretKey authority_ = SecretKey::generate();
  const SecretKey host_ = SecretKey::generate();
  const Certificate certificate_ = Certificate::make(authority_, host_.public_key(), "acme/live", 20030);
  /// A statement signed by a host, with its certificate.
  SignedStatement live() const {
    SignedStatement stated = stated_by(host_);
    stated.certificate = certificate_;
    return stated;
  }
};

TEST(Day, CountsFrom1970Utc) {
  EXPECT_EQ(day_of(0s), 0U);
  EXPECT_EQ(day_of(24h - 1ns), 0U);
  EXPECT_EQ(day_of(24h), 1U);
  EXPECT_EQ(day_of(1763251200s), 20408U);  // 2025-11-16
  EXPECT_EQ(day_of(-1s), 0U);
}

TEST_F(Stated, EncodingMatchesGrammar) {
  const SignedStatement stated = live();
  const std::string day("\x20\x4e\0\0\0\0\0\0", 8);
  const std::string last_day("\x3e\x4e\0\0\0\0\0\0", 8);
  EXPECT_EQ(stated.encode(), "KILNSTMT" + std::string("\1\0\0\0", 4) + kNamed + day + raw(sha256("content")) + "\1" +
                                 raw(*stated.signature) + "\1" + raw(Digest{host_.public_key().bytes}) + kNamed +
                                 last_day + raw(certificate_.signature));
  EXPECT_LE(stated.encode().size(), SignedStatement::kMaxBytes);
}

TEST_F(Stated, RoundTripsForRequestedSubject) {
  SignedStatement none = live();
  none.signature.reset();
  none.certificate.reset();
  for (const SignedStatement& stated : {live(), stated_by(authority_), none}) {
    const auto read = SignedStatement::decode(stated.encode(), "kiln entry 1");
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->statement.encode({}), stated.statement.encode({}));
    EXPECT_EQ(read->signature.has_value(), stated.signature.has_value());
    EXPECT_EQ(read->certificate.has_value(), stated.certificate.has_value());
    EXPECT_EQ(read->encode(), stated.encode());
  }
  const auto other = SignedStatement::decode(live().encode(), "kiln entry 2");
  ASSERT_TRUE(other.has_value());
  EXPECT_FALSE(verify_signature(host_.public_key(), *other->signature, other->statement))
      << "signed for another subject";
}

TEST_F(Stated, RejectsTruncatedOrTrailingBytes) {
  const std::string whole = live().encode();
  for (std::size_t size = 0; size != whole.size(); ++size) {
    EXPECT_EQ(outcome_of(std::string_view(whole).substr(0, size)), "corrupt") << size;
  }
  EXPECT_EQ(outcome_of(whole + '\0'), "corrupt");
  SignedStatement large = stated_by(host_);
  large.statement.name_space = std::string(SignedStatement::kMaxBytes, 'a');
  EXPECT_EQ(outcome_of(large.encode()), "corrupt") << "intact, but larger than any statement of kiln";
}

TEST_F(Stated, RejectsInvalidLengthOrMarker) {
  const std::string whole = live().encode();
  const std::size_t length = 12;  // of the namespace, after magic and version
  const std::size_t signed_mark = length + kNamed.size() + 8 + 32;
  const std::size_t certified_mark = signed_mark + 1 + 96;
  for (const std::size_t place : {std::size_t{0}, length + 3, signed_mark, certified_mark}) {
    std::string changed = whole;
    changed[place] = '\x7f';
    EXPECT_EQ(outcome_of(changed), "corrupt") << place;
  }
  std::string last_mark = stated_by(host_).encode();
  last_mark.back() = 2;
  EXPECT_EQ(outcome_of(last_mark), "corrupt") << "the encoding of a missing certificate is unique";
  std::string name = whole;
  name[certified_mark + 1 + 32 + 4] = 'A';
  EXPECT_EQ(outcome_of(name), "corrupt") << "certified for an invalid namespace";
}

TEST_F(Stated, OtherVersionIsUnsupported) {
  std::string newer = live().encode();
  newer[8] = 2;
  const auto read = SignedStatement::decode(newer, "s");
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, Code::Unsupported);
  EXPECT_NE(read.error().message.find("version 2"), std::string::npos);
}

TEST_F(Stated, CertificateCoversHostNamespaceAndLastDay) {
  EXPECT_TRUE(verify_signature(authority_.public_key(), certificate_.signature, certificate_.statement()));
  EXPECT_EQ(certificate_.statement().subject, "kiln host 1");
  Certificate other = certificate_;
  other.host = authority_.public_key();
  EXPECT_FALSE(verify_signature(authority_.public_key(), other.signature, other.statement()));
  other = certificate_;
  other.name_space = "acme/other";
  EXPECT_FALSE(verify_signature(authority_.public_key(), other.signature, other.statement()));
  other = certificate_;
  ++other.last_day;
  EXPECT_FALSE(verify_signature(authority_.public_key(), other.signature, other.statement()));
}

TEST_F(Stated, CertificateTextRoundTrips) {
  const std::string text = certificate_.text();
  EXPECT_EQ(text.find("kiln-certificate-1:"), 0U);
  EXPECT_EQ(text.find_first_not_of("0123456789abcdef", 19), std::string::npos) << text;
  const auto read = Certificate::parse(text);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->text(), text);
  EXPECT_EQ(read->host, host_.public_key());
  EXPECT_EQ(read->name_space, "acme/live");
  EXPECT_EQ(read->last_day, 20030U);

  for (std::size_t size = 0; size != text.size(); ++size) {
    EXPECT_FALSE(Certificate::parse(text.substr(0, size)).has_value()) << size;
  }
  for (const std::string& wrong :
       {text + "00", text + "0", text + "\n", " " + text, text.substr(0, 30) + "x" + text,
        "kiln-certificate-1:" + std::string(2000, '0'), "kiln-certificate-1:" + std::string(64, 'g'),
        Certificate::make(authority_, host_.public_key(), "Acme", 1).text(), host_.public_key().text()}) {
    const auto rejected = Certificate::parse(wrong);
    ASSERT_FALSE(rejected.has_value()) << wrong;
    EXPECT_EQ(rejected.error().code, Code::InvalidArgument);
    EXPECT_NE(rejected.error().message.find("kiln key certify"), std::string::npos) << "next step";
  }
  EXPECT_EQ(Certificate::parse("kiln-certificate-2:00").error().code, Code::Unsupported);
}

TEST_F(Stated, CertificateIsReadFromOneLineFile) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("host.cert");
  write_text(path, certificate_.text() + "\n");
  const auto read = Certificate::read(path);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->text(), certificate_.text());
  write_text(path, certificate_.text() + "\n\n");
  EXPECT_EQ(Certificate::read(path).error().message.find(path + ": it is not a kiln certificate"), 0U);
  EXPECT_EQ(Certificate::read(directory.path("none")).error().code, Code::Io);
  EXPECT_FALSE(Certificate::read(directory.path()).has_value());
}

}  // namespace
}  // namespace kiln::test
