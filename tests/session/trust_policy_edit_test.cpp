// SPDX-License-Identifier: Apache-2.0
#include "session/config/trust_policy_edit.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/files/files.hpp"
#include "session/config/trust_policy_file.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class TrustPolicyEdit : public testing::Test {
 protected:
  std::string file(const std::string& name = "trust.toml") const { return directory_.path(name); }
  static std::string text_in(const std::string& path) { return std::string((*read_file(path).value()).view()); }
  static mode_t mode_of(const std::string& path) {
    struct stat status;
    return stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory_.path()), fs::directory_iterator()));
  }

  const TemporaryDirectory directory_;
  const PublicKey key_ = SecretKey::generate().public_key();
};

TEST_F(TrustPolicyEdit, CreatesFileThatProgramsAccept) {
  EXPECT_EQ(add_trusted_key(file("new/trust.toml"), key_, {"acme/*", "tools"}).value(), true);
  const auto policy = read_trust_policy(file("new/trust.toml"));
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_TRUE(policy->may_trust("acme/vision"));
  EXPECT_TRUE(policy->may_trust("tools"));
  EXPECT_FALSE(policy->may_trust("other"));
}

TEST_F(TrustPolicyEdit, KeepsTheRestOfTheFileAndItsMode) {
  const std::string before = "# our keys\nrevoked = []\n[minimum_epoch]\n\"acme/vision\" = 7 # since June";
  write_text(file(), before);
  ASSERT_EQ(chmod(file().c_str(), 0600), 0);
  ASSERT_TRUE(add_trusted_key(file(), key_, {"acme/*"}).value());
  EXPECT_TRUE(text_in(file()).starts_with(before + "\n"));
  EXPECT_EQ(mode_of(file()), 0600U);
  const PublicKey other = SecretKey::generate().public_key();
  ASSERT_TRUE(add_trusted_key(file(), other, {"tools"}).value());
  EXPECT_TRUE(read_trust_policy(file())->may_trust("acme/vision"));
  EXPECT_TRUE(read_trust_policy(file())->may_trust("tools"));
  EXPECT_EQ(files(), 1U) << "no temporary file is left";
}

TEST_F(TrustPolicyEdit, OtherUsersCanReachNewFileOutsideTheConfigurationDirectory) {
  setenv("XDG_CONFIG_HOME", file("own").c_str(), 1);
  const mode_t before = umask(022);
  EXPECT_TRUE(add_trusted_key(file("etc/acme/kiln/trust.toml"), key_, {"acme"}).value());
  EXPECT_TRUE(add_trusted_key(file("own/acme/kiln/trust.toml"), key_, {"acme"}).value());
  EXPECT_TRUE(add_trusted_key(file("own-not/trust.toml"), key_, {"acme"}).value());
  umask(before);
  unsetenv("XDG_CONFIG_HOME");
  for (const char* name : {"etc", "etc/acme", "etc/acme/kiln", "own-not"})
    EXPECT_EQ(mode_of(file(name)), 0755U) << name;
  for (const char* name : {"own", "own/acme", "own/acme/kiln"}) EXPECT_EQ(mode_of(file(name)), 0700U) << name;
  EXPECT_EQ(mode_of(file("etc/acme/kiln/trust.toml")), 0644U);
}

TEST_F(TrustPolicyEdit, KeepsTheGroup) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to give a file to any group";
  write_text(file(), "");
  ASSERT_EQ(chown(file().c_str(), static_cast<uid_t>(-1), 12345), 0);
  ASSERT_EQ(chmod(file().c_str(), 0640), 0);
  ASSERT_TRUE(add_trusted_key(file(), key_, {"acme"}).value());
  struct stat status;
  ASSERT_EQ(stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_gid, 12345U);
  EXPECT_EQ(status.st_uid, geteuid());
  EXPECT_EQ(mode_of(file()), 0640U);
}

TEST_F(TrustPolicyEdit, LockThatIsNeverReleasedIsAnError) {
  const Fd holder(open(directory_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(flock(holder.get(), LOCK_EX), 0);
  const auto added = add_trusted_key(file(), key_, {"acme"}, std::chrono::milliseconds(50));
  ASSERT_FALSE(added.has_value());
  EXPECT_EQ(added.error().code, Code::TimedOut);
  EXPECT_NE(added.error().message.find("cannot lock " + directory_.path()), std::string::npos) << added.error().message;
  EXPECT_FALSE(fs::exists(file()));
  ASSERT_EQ(flock(holder.get(), LOCK_UN), 0);
  EXPECT_TRUE(add_trusted_key(file(), key_, {"acme"}).value());
}

TEST_F(TrustPolicyEdit, AddsNothingTwice) {
  ASSERT_TRUE(add_trusted_key(file(), key_, {"acme/*"}).value());
  const std::string before = text_in(file());
  EXPECT_FALSE(add_trusted_key(file(), key_, {"acme/*"}).value());
  EXPECT_EQ(text_in(file()), before);
  EXPECT_TRUE(add_trusted_key(file(), key_, {"tools"}).value()) << "another namespace for the same key";
  EXPECT_TRUE(read_trust_policy(file())->may_trust("tools"));
}

TEST_F(TrustPolicyEdit, FollowsNoLinkAndReplacesNoOtherKindOfFile) {
  write_text(file("real.toml"), "");
  fs::create_symlink(file("real.toml"), file());
  EXPECT_EQ(add_trusted_key(file(), key_, {"acme"}).error().code, Code::Denied);
  EXPECT_TRUE(fs::is_symlink(file()));
  EXPECT_EQ(text_in(file("real.toml")), "");
  fs::remove(file());
  ASSERT_EQ(mkfifo(file().c_str(), 0600), 0);
  EXPECT_EQ(add_trusted_key(file(), key_, {"acme"}).error().code, Code::Denied) << "and does not hang";
}

TEST_F(TrustPolicyEdit, RejectsFileOrDirectoryThatOthersCanWrite) {
  write_text(file(), "");
  ASSERT_EQ(chmod(file().c_str(), 0666), 0);
  EXPECT_EQ(add_trusted_key(file(), key_, {"acme"}).error().code, Code::Denied);
  fs::remove(file());
  fs::create_directory(file("open"));
  ASSERT_EQ(chmod(file("open").c_str(), 0777), 0);
  EXPECT_EQ(add_trusted_key(file("open/trust.toml"), key_, {"acme"}).error().code, Code::Denied);
  // A directory further up: the directory of the file itself is private.
  fs::create_directory(file("open/private"));
  ASSERT_EQ(chmod(file("open/private").c_str(), 0700), 0);
  const auto below = add_trusted_key(file("open/private/trust.toml"), key_, {"acme"});
  EXPECT_EQ(below.error().code, Code::Denied);
  EXPECT_TRUE(fs::is_empty(file("open/private"))) << "what programs would reject is not published";
}

TEST_F(TrustPolicyEdit, RejectsFileOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to give a file to another user";
  write_text(file(), "");
  ASSERT_EQ(chown(file().c_str(), 12345, 12345), 0);
  EXPECT_EQ(add_trusted_key(file(), key_, {"acme"}).error().code, Code::Denied);
}

TEST_F(TrustPolicyEdit, RejectsInvalidNamespaceRevokedKeyAndBrokenFile) {
  EXPECT_EQ(add_trusted_key(file(), key_, {"Acme"}).error().code, Code::InvalidArgument);
  EXPECT_FALSE(fs::exists(file()));
  write_text(file(), "revoked = [\"" + key_.id().hex() + "\"]\n");
  EXPECT_EQ(add_trusted_key(file(), key_, {"acme"}).error().code, Code::Denied);
  write_text(file(), "[[key\n");
  const auto broken = add_trusted_key(file(), key_, {"acme"});
  EXPECT_EQ(broken.error().code, Code::InvalidArgument);
  EXPECT_NE(broken.error().message.find("trust.toml"), std::string::npos);
  EXPECT_EQ(text_in(file()), "[[key\n");
}

TEST_F(TrustPolicyEdit, KeysAddedAtTheSameTimeAreAllKept) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this, i] {
      const PublicKey key = SecretKey::generate().public_key();
      EXPECT_TRUE(add_trusted_key(file(), key, {"team" + std::to_string(i)}).value());
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto policy = read_trust_policy(file());
  ASSERT_TRUE(policy) << policy.error().message;
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(policy->may_trust("team" + std::to_string(i))) << i;
}

}  // namespace
}  // namespace kiln::test
