// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "apps/run_kiln.hpp"

namespace kiln::test {
namespace {

class KeyCommand : public KilnProgram {
 protected:
  /// Returns the digits of a secret key, which no command may print.
  std::string secret_in(const std::string& name) {
    std::ifstream file(path(name));
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(text.size(), 79U);
    EXPECT_EQ(text.find("kiln-secret-1:"), 0U);
    return text.substr(14, 64);
  }

  static void expect_hidden(const Ran& ran, const std::string& secret) {
    EXPECT_EQ(ran.out.find(secret.substr(0, 12)), std::string::npos);
    EXPECT_EQ(ran.err.find(secret.substr(0, 12)), std::string::npos);
  }
};

TEST_F(KeyCommand, GeneratesKeyAndPrintsPolicyLines) {
  const Ran made = run({"key", "generate", "-o", "kiln.key"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  expect_hidden(made, secret_in("kiln.key"));
  struct stat status;
  ASSERT_EQ(::stat(path("kiln.key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);

  const Ran shown = run({"key", "show", "kiln.key", "--json"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  expect_hidden(shown, secret_in("kiln.key"));
  const std::string key = shown.json().value("public", "");
  const std::string id = shown.json().value("id", "");
  EXPECT_EQ(key.find("kiln-public-1:"), 0U);
  EXPECT_EQ(id.size(), 64U);
  EXPECT_NE(made.out.find("public = \"" + key + "\"\nnamespaces = ["), std::string::npos) << made.out;
  EXPECT_NE(made.out.find(id.substr(0, 16)), std::string::npos) << made.out;

  for (const std::string& name : {std::string("kiln.key"), key}) {
    const Ran plain = run({"key", "show", name});
    EXPECT_EQ(plain.exit_code, 0) << plain.err;
    EXPECT_NE(plain.out.find(key), std::string::npos) << plain.out;
    EXPECT_NE(plain.out.find(id.substr(0, 16)), std::string::npos) << plain.out;
    EXPECT_EQ(plain.out.find(id.substr(0, 17)), std::string::npos) << "the text output shows only a prefix";
  }
}

TEST_F(KeyCommand, JsonContainsPathOfSecretKey) {
  const Ran made = run({"key", "generate", "-o", "kiln.key", "--json"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  expect_hidden(made, secret_in("kiln.key"));
  EXPECT_EQ(made.json().value("secret_file", ""), "kiln.key");
  const Ran shown = run({"key", "show", "kiln.key", "--json"});
  EXPECT_EQ(shown.json()["public"], made.json()["public"]);
  EXPECT_EQ(shown.json()["id"], made.json()["id"]);
}

TEST_F(KeyCommand, DoesNotOverwriteKey) {
  ASSERT_EQ(run({"key", "generate", "-o", "kiln.key"}).exit_code, 0);
  const std::string secret = secret_in("kiln.key");
  const Ran again = run({"key", "generate", "-o", "kiln.key"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_TRUE(again.says("never overwritten")) << again.err;
  EXPECT_EQ(secret_in("kiln.key"), secret);
}

TEST_F(KeyCommand, RejectsKeyReadableByOthers) {
  ASSERT_EQ(run({"key", "generate", "-o", "kiln.key"}).exit_code, 0);
  ASSERT_EQ(::chmod(path("kiln.key").c_str(), 0644), 0);
  const Ran shown = run({"key", "show", "kiln.key"});
  EXPECT_EQ(shown.exit_code, 4);
  EXPECT_TRUE(shown.says("chmod 600 '" + path("kiln.key"))) << shown.err;
  expect_hidden(shown, secret_in("kiln.key"));
}

TEST_F(KeyCommand, ReportsInvalidArguments) {
  write("other", "something else\n");
  EXPECT_TRUE(run({"key", "show", "other"}).says("not a kiln secret key"));
  EXPECT_EQ(run({"key", "show", "none"}).exit_code, 1);
  EXPECT_EQ(run({"key", "show", "kiln-public-1:12"}).exit_code, 2);
  EXPECT_EQ(run({"key", "generate"}).exit_code, 2);
  EXPECT_EQ(run({"key"}).exit_code, 2);
  const std::string secret(64, '7');
  const Ran on_the_line = run({"key", "show", "kiln-secret-1:" + secret});
  EXPECT_EQ(on_the_line.exit_code, 2);
  EXPECT_TRUE(on_the_line.says("must be in a file")) << on_the_line.err;
  expect_hidden(on_the_line, secret);
}

/// A fixture with the key of an authority and the key of a host, whose public key is in a file.
class KeyCertifyCommand : public KeyCommand {
 protected:
  void SetUp() override {
    KeyCommand::SetUp();
    authority_ = run({"key", "generate", "-o", "authority.key", "--json"}).json().value("id", "");
    host_ = run({"key", "generate", "-o", "host.key", "--json"}).json().value("public", "");
    write("host.pub", host_ + "\n");
  }
  Ran certify(const std::string& host, std::vector<std::string> more = {}) {
    std::vector<std::string> all = {"key",         "certify",   host, "--key",    "authority.key",
                                    "--namespace", "acme/live", "-o", "host.cert"};
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  }

  std::string authority_;
  std::string host_;
};

TEST_F(KeyCertifyCommand, CertifiesHostForLiveNamespace) {
  const Ran made = certify("host.pub", {"--days", "30"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  expect_hidden(made, secret_in("authority.key"));
  EXPECT_NE(made.out.find("[[live]]\nnamespace = \"acme/live\""), std::string::npos) << made.out;
  EXPECT_NE(made.out.find(authority_.substr(0, 16)), std::string::npos) << made.out;
  struct stat status;
  ASSERT_EQ(::stat(path("host.cert").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0644U);

  const Ran shown = run({"key", "show", "host.cert", "--json"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(shown.json().value("public", ""), host_);
  EXPECT_EQ(shown.json().value("namespace", ""), "acme/live");
  EXPECT_EQ(shown.json().value("authority", ""), authority_);
  const std::string last_day = shown.json().value("last_day", "");
  EXPECT_EQ(last_day.size(), 10U) << last_day;
  const Ran plain = run({"key", "show", "host.cert"});
  for (const std::string& part : {std::string("acme/live"), last_day, authority_.substr(0, 16), host_}) {
    EXPECT_NE(plain.out.find(part), std::string::npos) << plain.out;
  }
  EXPECT_EQ(plain.out.find("expired"), std::string::npos) << plain.out;
}

TEST_F(KeyCertifyCommand, AcceptsKeyTextOrFile) {
  for (const std::string& host : {std::string("host.pub"), std::string("host.key"), host_}) {
    const Ran made = certify(host, {"--json"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    EXPECT_EQ(made.json().value("public", ""), host_);
    EXPECT_EQ(made.json().value("certificate_file", ""), "host.cert");
    std::filesystem::remove(path("host.cert"));
    EXPECT_EQ(run({"key", "show", host, "--json"}).json().value("public", ""), host_);
  }
}

TEST_F(KeyCertifyCommand, ShowsExpiredCertificate) {
  write("old.cert", "kiln-certificate-1:" + std::string(64, 'a') + "04000000" + "61636d65" + "0a00000000000000" +
                        std::string(2 * 96, 'b') + "\n");
  const Ran shown = run({"key", "show", "old.cert"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_NE(shown.out.find("1970-01-11, expired"), std::string::npos) << shown.out;
}

TEST_F(KeyCertifyCommand, DoesNotOverwriteFile) {
  write("host.cert", "something");
  const Ran again = certify("host.pub");
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_TRUE(again.says("is not overwritten")) << again.err;
  EXPECT_EQ(std::filesystem::file_size(path("host.cert")), 9U);
}

TEST_F(KeyCertifyCommand, ReportsErrorsAndWritesNothing) {
  write("bad.pub", "kiln-public-1:12\n");
  write("bad.cert", "kiln-certificate-1:12\n");
  const struct {
    std::vector<std::string> arguments;
    int exit_code;
    const char* says;
  } wrong[] = {
      {{"bad.pub", "--key", "authority.key", "--namespace", "acme/live"}, 2, "bad.pub: invalid public key"},
      {{"none", "--key", "authority.key", "--namespace", "acme/live"}, 1, "cannot open none"},
      {{"host.pub", "--key", "none", "--namespace", "acme/live"}, 1, "cannot open none"},
      {{"host.pub", "--key", "host.pub", "--namespace", "acme/live"}, 2, "is a public key"},
      {{"host.pub", "--key", "authority.key", "--namespace", "acme/*"}, 2, "is not a valid namespace"},
      {{"host.pub", "--key", "authority.key", "--namespace", "acme/live", "--days", "0"}, 2, "1 to 365"},
      {{"host.pub", "--key", "authority.key", "--namespace", "acme/live", "--days", "366"}, 2, "1 to 365"},
      {{"host.pub", "--key", "authority.key"}, 2, "--namespace"},
      {{"host.pub", "--namespace", "acme/live"}, 2, "--key"},
  };
  for (const auto& [arguments, exit_code, says] : wrong) {
    std::vector<std::string> all = {"key", "certify", "-o", "host.cert"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Ran ran = run(all);
    EXPECT_EQ(ran.exit_code, exit_code) << ran.err;
    EXPECT_TRUE(ran.says(says)) << ran.err;
  }
  EXPECT_FALSE(std::filesystem::exists(path("host.cert")));
  EXPECT_EQ(run({"key", "show", "bad.cert"}).exit_code, 2);
  EXPECT_TRUE(run({"key", "show", "bad.cert"}).says("bad.cert: it is not a kiln certificate"));
}

}  // namespace
}  // namespace kiln::test
