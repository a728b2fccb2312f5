// SPDX-License-Identifier: Apache-2.0
#include "hostile/two_users.hpp"

namespace kiln::test {
namespace {

class HostileRoom : public TwoUsers {};

// The other tests of this directory prove nothing unless this holds.
TEST_F(HostileRoom, UsersCannotAccessEachOthersFiles) {
  make_file(home(kVictim) + "/secret", "s", 0600, kVictim);
  const auto can_read = [&] { return access((home(kVictim) + "/secret").c_str(), R_OK) == 0 ? 1 : 0; };
  EXPECT_EQ(as(kVictim, can_read), 1);
  EXPECT_EQ(as(kAttacker, can_read), 0);
  EXPECT_EQ(as(kAttacker, [] { return setuid(0) == 0 || setuid(kVictim) == 0 ? 1 : 0; }), 0);
  const std::string file = shared() + "/f";
  EXPECT_EQ(as(kAttacker, [&] { return open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666) < 0 ? 1 : 0; }), 0);
}

TEST_F(HostileRoom, RunsProgramsAsEitherUser) {
  const std::string program = publish("/usr/bin/id");
  EXPECT_EQ(run(kVictim, {program, "-u"}).output, std::to_string(kVictim) + "\n");
  EXPECT_EQ(run(kAttacker, {program, "-u"}).output, std::to_string(kAttacker) + "\n");
  EXPECT_EQ(run(kVictim, {program, "--no-such-option"}).code, 1);
}

}  // namespace
}  // namespace kiln::test
