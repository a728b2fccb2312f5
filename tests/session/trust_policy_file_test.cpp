// SPDX-License-Identifier: Apache-2.0
#include "session/config/trust_policy_file.hpp"

#include <sys/stat.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/hash.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

const std::string kKey = "public = \"kiln-public-1:" + std::string(64, 'a') + "\"";

bool trusts(const TrustPolicy& policy, const SecretKey& key, const std::string& name_space, std::uint64_t epoch) {
  const Statement statement = {"kiln bundle 1", name_space, epoch, sha256("content")};
  const Signature signature = key.sign(statement);
  return policy.verify_bundle(statement, &signature).has_value();
}

TEST(TrustFile, ReadsKeysNamespacesAndEpochs) {
  const SecretKey acme = SecretKey::generate();
  const SecretKey tools = SecretKey::generate();
  const auto policy = parse_trust_policy(R"(
[[key]]
public = ")" + acme.public_key().text() + R"("
namespaces = ["acme/*", "acme"]

[[key]]
public = ")" + tools.public_key().text() +
                                         R"("
namespaces = ["*"]

[minimum_epoch]
"acme/vision" = 7
"tools.v2/*" = 3
tools = 2
)");
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  EXPECT_TRUE(trusts(*policy, acme, "acme", 0));
  EXPECT_TRUE(trusts(*policy, acme, "acme/vision", 7));
  EXPECT_FALSE(trusts(*policy, acme, "acme/vision", 6));
  EXPECT_FALSE(trusts(*policy, acme, "tools", 9));
  EXPECT_TRUE(trusts(*policy, tools, "tools", 2));
  EXPECT_FALSE(trusts(*policy, tools, "tools", 1));
  EXPECT_FALSE(trusts(*policy, tools, "tools.v2/a", 2));
  EXPECT_FALSE(trusts(*policy, SecretKey::generate(), "acme", 9));
  EXPECT_FALSE(policy->allows_unsigned()) << "a policy file cannot allow this";
}

/// Returns why content that a host published today is rejected under a policy, or "trusted".
std::string host_error(const TrustPolicy& policy, const SecretKey& authority, const SecretKey& host,
                       std::uint64_t day) {
  constexpr std::uint64_t today = 20000;
  SignedStatement stated;
  stated.statement = {"kiln entry 1", "acme/live", day, sha256("content")};
  stated.signature = host.sign(stated.statement);
  stated.certificate = Certificate::make(authority, host.public_key(), "acme/live", today);
  const auto error = policy.verify(stated, std::chrono::hours(24 * today));
  return error ? to_string(error->reason) : "trusted";
}

TEST(TrustFile, ReadsLiveNamespacesAndAge) {
  const SecretKey authority = SecretKey::generate();
  const SecretKey host = SecretKey::generate();
  const std::string key = "[[key]]\npublic = \"" + authority.public_key().text() + "\"\nnamespaces = [\"acme/*\"]\n";
  const auto without = parse_trust_policy(key);
  ASSERT_TRUE(without.has_value());
  EXPECT_EQ(host_error(*without, authority, host, 20000), "live_namespace_not_trusted");
  const auto policy = parse_trust_policy(key + "[[live]]\nnamespace = \"acme/live\"\ndays = 7\n");
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  EXPECT_EQ(host_error(*policy, authority, host, 20000), "trusted");
  EXPECT_EQ(host_error(*policy, authority, host, 19993), "trusted");
  EXPECT_EQ(host_error(*policy, authority, host, 19992), "epoch_too_old");
}

TEST(TrustFile, RevokesKeysAndKeyIds) {
  const SecretKey authority = SecretKey::generate();
  const SecretKey host = SecretKey::generate();
  const std::string rest = "[[key]]\npublic = \"" + authority.public_key().text() +
                           "\"\nnamespaces = [\"acme/*\"]\n[[live]]\nnamespace = \"acme/live\"\ndays = 7\n";
  for (const SecretKey* key : {&authority, &host}) {
    for (const std::string& name : {key->public_key().text(), key->public_key().id().hex()}) {
      const auto policy = parse_trust_policy("revoked = [\"" + name + "\"]\n" + rest);
      ASSERT_TRUE(policy.has_value()) << policy.error().message;
      EXPECT_EQ(host_error(*policy, authority, host, 20000), "revoked_key");
    }
  }
}

TEST(TrustFile, CanRejectExternalCode) {
  const auto strict = parse_trust_policy("foreign = false\n");
  ASSERT_TRUE(strict.has_value()) << strict.error().message;
  EXPECT_NE(strict->fingerprint(), TrustPolicy().fingerprint());
  EXPECT_EQ(parse_trust_policy("foreign = true\n")->fingerprint(), TrustPolicy().fingerprint());
  const auto wrong = parse_trust_policy("foreign = \"no\"\n");
  ASSERT_FALSE(wrong.has_value());
  EXPECT_NE(wrong.error().message.find("'foreign' must be true or false"), std::string::npos) << wrong.error().message;
}

TEST(TrustFile, AllowsDuplicateKeys) {
  const SecretKey key = SecretKey::generate();
  const std::string named = "[[key]]\npublic = \"" + key.public_key().text() + "\"\nnamespaces = ";
  const auto policy = parse_trust_policy(named + "[\"a\"]\n" + named + "[\"b\"]\n");
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  EXPECT_TRUE(trusts(*policy, key, "a", 0));
  EXPECT_TRUE(trusts(*policy, key, "b", 0));
}

TEST(TrustFile, EmptyFileTrustsNoKey) {
  const auto policy = parse_trust_policy("# no key yet\n");
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  EXPECT_TRUE(policy->empty());
}

TEST(TrustFile, RejectsInvalidFileWithLineAndColumn) {
  const struct {
    std::string text;
    const char* place;
    const char* what;
  } rejected[] = {
      {"a = ", "line 1, column ", ""},
      {"keys = []", "line 1, column 1: ", "did you mean 'key'?"},
      {"unsigned = true", "line 1, column 1: ", "unknown key 'unsigned'"},
      {"key = 3", "line 1, column 1: ", "[[key]]"},
      {"[key]\n" + kKey, "line 1, column 2: ", "[[key]]"},
      {"[[key]]\nnamespaces = [\"*\"]", "line 1, column ", "public"},
      {"[[key]]\n" + kKey, "line 1, column ", "namespaces"},
      {"[[key]]\n" + kKey + "\nnamespaces = []", "line 3, column 1: ", "empty"},
      {"[[key]]\n" + kKey + "\nnamespaces = \"*\"", "line 3, column 1: ", "array"},
      {"[[key]]\n" + kKey + "\nnamespaces = [\"acme\", 3]", "line 3, column 23: ", "strings"},
      {"[[key]]\n" + kKey + "\nnamespaces = [\"acme\",\n \"acme*\"]",
       "line 4, column 2: ", "'acme*' is not a valid namespace"},
      {"[[key]]\n" + kKey + "\nnamespace = [\"*\"]", "line 3, column 1: ", "did you mean 'namespaces'?"},
      {"[[key]]\npublic = 3\nnamespaces = [\"*\"]", "line 2, column 1: ", "string"},
      {"[[key]]\npublic = \"kiln-public-1:abc\"\nnamespaces = [\"*\"]", "line 2, column 1: ", "64 hexadecimal"},
      {"[[key]]\npublic = \"kiln-public-2:abc\"\nnamespaces = [\"*\"]", "line 2, column 1: ", "version"},
      {"[[key]]\npublic = \"kiln-secret-1:abc\"\nnamespaces = [\"*\"]", "line 2, column 1: ", "secret key"},
      {"minimum_epoch = 3", "line 1, column 1: ", "[minimum_epoch]"},
      {"[minimum_epoch]\nacme = -1", "line 2, column 1: ", "number"},
      {"[minimum_epoch]\nacme = \"7\"", "line 2, column 1: ", "number"},
      {"[minimum_epoch]\nacme = 7.5", "line 2, column 1: ", "number"},
      {"[minimum_epoch]\nacme.v2 = 7", "line 2, column 1: ", "quotes"},
      {"[minimum_epoch]\n\"acme/\" = 7", "line 2, column 1: ", "not a valid namespace"},
      {"[minimum_epoch]\nacme = 99999999999999999999", "line 2, column ", ""},
      {"[live]\nnamespace = \"acme\"", "line 1, column 2: ", "[[live]]"},
      {"[[live]]\ndays = 7", "line 1, column ", "namespace"},
      {"[[live]]\nnamespace = \"acme\"", "line 1, column ", "days"},
      {"[[live]]\nnamespace = \"acme\"\nday = 7", "line 3, column 1: ", "did you mean 'days'?"},
      {"[[live]]\nnamespace = \"*\"\ndays = 7", "line 2, column 1: ", "but not \"*\""},
      {"[[live]]\nnamespace = \"acme*\"\ndays = 7", "line 2, column 1: ", "'acme*' is not a valid live namespace"},
      {"[[live]]\nnamespace = [\"acme\"]\ndays = 7", "line 2, column 1: ", "string"},
      {"[[live]]\nnamespace = \"acme\"\ndays = 0", "line 3, column 1: ", "1 to 365"},
      {"[[live]]\nnamespace = \"acme\"\ndays = 366", "line 3, column 1: ", "1 to 365"},
      {"[[live]]\nnamespace = \"acme\"\ndays = \"7\"", "line 3, column 1: ", "1 to 365"},
      {"revoked = \"abc\"", "line 1, column 1: ", "array"},
      {"revoked = [\n\"d75a980182b10ab7\"]", "line 2, column 1: ", "the 64 digits of its id"},
      {"revoked = [\"kiln-public-1:abc\"]", "line 1, column 12: ", "64 hexadecimal"},
      {"revoked = [\"kiln-secret-1:abc\"]", "line 1, column 12: ", "secret key"},
  };
  for (const auto& [text, place, what] : rejected) {
    const auto policy = parse_trust_policy(text);
    ASSERT_FALSE(policy.has_value()) << text;
    EXPECT_EQ(policy.error().code, Code::InvalidArgument) << text;
    EXPECT_EQ(policy.error().message.find(place), 0U) << text << "\n" << policy.error().message;
    EXPECT_NE(policy.error().message.find(what), std::string::npos) << text << "\n" << policy.error().message;
  }
}

TEST(TrustFile, ErrorMessageContainsNoSecret) {
  const std::string digits = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  const std::string secret = "kiln-secret-1:" + digits;
  for (const std::string& text : {secret + "\n", "[[key]]\npublic = \"" + secret + "\"\nnamespaces = [\"*\"]\n",
                                  "[[key]]\npublic = " + secret + "\n", "revoked = [\"" + secret + "\"]\n"}) {
    const auto policy = parse_trust_policy(text);
    ASSERT_FALSE(policy.has_value()) << text;
    EXPECT_EQ(policy.error().message.find("234567"), std::string::npos) << policy.error().message;
  }
}

TEST(TrustFile, InvalidFileTrustsNoKeyAndIsReportedWithOneNextStep) {
  const TemporaryDirectory directory;
  Config config;
  config.trust_policy = directory.path("trust.toml");
  write_text(config.trust_policy, "[[key]]\n" + kKey + "\nnamespaces = [\"acme*\"]\n");
  std::vector<std::string> messages;
  const EventEmitter emitter([&](const Event& event) { messages.push_back(event.message); });
  EXPECT_TRUE(make_trust_policy({}, config, emitter).empty());
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].find("no bundle file is trusted: " + config.trust_policy + ": line 3"), 0U) << messages[0];
  EXPECT_EQ(messages[0].find("; "), messages[0].rfind("; ")) << messages[0];
}

TEST(TrustFile, RejectsFileWritableByOthers) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("trust.toml");
  write_text(path, "[[key]]\n" + kKey + "\nnamespaces = [\"*\"]\n");
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  const auto policy = read_trust_policy(path);
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  EXPECT_FALSE(policy->empty());

  ASSERT_EQ(::chmod(path.c_str(), 0646), 0);
  EXPECT_EQ(read_trust_policy(path).error().code, Code::Denied);
  EXPECT_EQ(read_trust_policy(path).error().message.find(path + ": other users can write to " + path), 0U);
  EXPECT_EQ(read_trust_policy(directory.path("none")).error().code, Code::Io);
  EXPECT_FALSE(read_trust_policy(directory.path()).has_value());
  write_text(directory.path("bad.toml"), "key = 3\n");
  EXPECT_NE(read_trust_policy(directory.path("bad.toml")).error().message.find("bad.toml: line 1"), std::string::npos);
}

}  // namespace
}  // namespace kiln::test
