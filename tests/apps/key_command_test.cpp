#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "apps/run_kiln.hpp"

namespace kiln::test {
namespace {

class KeyCommand : public KilnProgram {
 protected:
  /// The digits of a secret key, which nothing may ever print.
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

TEST_F(KeyCommand, MakesAKeyAndSaysWhatAPolicyFileNeeds) {
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
    EXPECT_EQ(plain.out.find(id.substr(0, 17)), std::string::npos) << "people see the beginning";
  }
}

TEST_F(KeyCommand, SaysInJsonWhereTheSecretIs) {
  const Ran made = run({"key", "generate", "-o", "kiln.key", "--json"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  expect_hidden(made, secret_in("kiln.key"));
  EXPECT_EQ(made.json().value("secret_file", ""), "kiln.key");
  const Ran shown = run({"key", "show", "kiln.key", "--json"});
  EXPECT_EQ(shown.json()["public"], made.json()["public"]);
  EXPECT_EQ(shown.json()["id"], made.json()["id"]);
}

TEST_F(KeyCommand, NeverOverwritesAKey) {
  ASSERT_EQ(run({"key", "generate", "-o", "kiln.key"}).exit_code, 0);
  const std::string secret = secret_in("kiln.key");
  const Ran again = run({"key", "generate", "-o", "kiln.key"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_TRUE(again.says("never overwritten")) << again.err;
  EXPECT_EQ(secret_in("kiln.key"), secret);
}

TEST_F(KeyCommand, RefusesAKeyThatOthersCanRead) {
  ASSERT_EQ(run({"key", "generate", "-o", "kiln.key"}).exit_code, 0);
  ASSERT_EQ(::chmod(path("kiln.key").c_str(), 0644), 0);
  const Ran shown = run({"key", "show", "kiln.key"});
  EXPECT_EQ(shown.exit_code, 4);
  EXPECT_TRUE(shown.says("chmod 600 kiln.key")) << shown.err;
  expect_hidden(shown, secret_in("kiln.key"));
}

TEST_F(KeyCommand, SaysWhatIsWrongWithWhatItWasGiven) {
  write("other", "something else\n");
  EXPECT_TRUE(run({"key", "show", "other"}).says("no secret key"));
  EXPECT_EQ(run({"key", "show", "none"}).exit_code, 1);
  EXPECT_EQ(run({"key", "show", "kiln-public-1:12"}).exit_code, 2);
  EXPECT_EQ(run({"key", "generate"}).exit_code, 2);
  EXPECT_EQ(run({"key"}).exit_code, 2);
  const std::string secret(64, '7');
  const Ran on_the_line = run({"key", "show", "kiln-secret-1:" + secret});
  EXPECT_EQ(on_the_line.exit_code, 2);
  EXPECT_TRUE(on_the_line.says("belongs in a file")) << on_the_line.err;
  expect_hidden(on_the_line, secret);
}

}  // namespace
}  // namespace kiln::test
