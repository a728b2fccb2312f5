// SPDX-License-Identifier: Apache-2.0
// Attacks on directories that users share: links planted in a shared store or among its leases, files with names that
// kiln did not create, and directories that are exchanged while kiln works in them.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

#include "backends/command/command_work_dir.hpp"
#include "cache/disk_store.hpp"
#include "cache/local_claims.hpp"
#include "engine/status_directory.hpp"
#include "hostile/two_users.hpp"
#include "remote/directory_leases.hpp"
#include "remote/directory_object_store.hpp"
#include "remote/remote_store.hpp"
#include "support/fakes/manual_clock.hpp"
#include "support/fixtures/artifacts.hpp"
#include "support/fixtures/remote_fixture.hpp"
#include "worker/worker.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using Bucket = ObjectStore::Bucket;

class HostileDirectories : public TwoUsers {
 protected:
  static mode_t mode_of(const std::string& path) {
    struct stat status {};
    return lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }
  static void age(const std::string& path, std::chrono::hours by) {
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - by);
  }
  // Returns every path below a directory with its mode and, for files, its bytes, to detect changes.
  static std::map<std::string, std::string> state_below(const std::string& path) {
    std::map<std::string, std::string> state;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      char mode[16];
      std::snprintf(mode, sizeof mode, "%04o ", static_cast<unsigned>(mode_of(entry.path())));
      state[entry.path()] = mode + (entry.is_regular_file() ? read_text(entry.path()) : std::string());
    }
    return state;
  }
  // Creates a directory of the victim with a document and with files whose names kiln might create, all of them old.
  std::string make_documents() const {
    std::string directory = home(kVictim) + "/documents";
    make_directory(directory, 0755, kVictim);
    const std::string digits = sha256("some content").hex();
    for (const std::string& name :
         {std::string("report.pdf"), std::string(".tmp-1a-2-3"), digits, digits + ".hedge-0", digits + ".gone-owner"}) {
      make_file(directory + "/" + name, "kept", 0644, kVictim);
      age(directory + "/" + name, 72h);
    }
    return directory;
  }
  // Takes over an expired lease, which triggers the sweep. Returns 0 or the number of the failed step.
  static int take_over(const std::string& root) {
    ManualClock clock;
    DirectoryLeases leases(root, clock);
    const auto first = leases.try_acquire(request_number(1), "dead", 5s, 1s);
    if (!first || !*first) return 11;
    (void)leases.remaining_ttl(request_number(1), 1s);
    clock.advance(6s);
    const auto second = leases.try_acquire(request_number(1), "heir", 5s, 1s);
    return second && *second ? 0 : 12;
  }
  static std::unique_ptr<DiskStore> disk(const std::string& root) {
    return DiskStore::open({root, 0, false, {}}).value();
  }
  int attacker_links(const std::string& target, const std::string& name) const {
    return as(kAttacker, [&] { return symlink(target.c_str(), (shared() + "/" + name).c_str()) == 0 ? 0 : 1; });
  }
};

TEST_F(HostileDirectories, PlantedShardLinksReachNoCacheOfTheVictim) {
  const TrustFixture trust;
  const std::string cache = home(kVictim) + "/cache";
  const auto key = key_number(1);
  ASSERT_EQ(as(kVictim, [&] { return disk(cache)->put(key, artifact_of(key, 1'000), {}).has_value() ? 0 : 1; }), 0);
  const auto before = state_below(cache);
  ASSERT_EQ(as(kAttacker,
               [&] {
                 umask(0);
                 if (mkdir((shared() + "/ac").c_str(), 0777) != 0) return 1;
                 for (int i = 0; i < 256; ++i) {
                   char shard[3];
                   std::snprintf(shard, sizeof shard, "%02x", static_cast<unsigned>(i));
                   const std::string target = cache + "/v1/entries/" + shard;
                   if (symlink(target.c_str(), (shared() + "/ac/" + shard).c_str()) != 0) return 2;
                 }
                 return 0;
               }),
            0);
  const int published = as(kVictim, [&] {
    RemoteStore store({.object_store = std::make_shared<DirectoryObjectStore>(shared()),
                       .policy = std::make_shared<const TrustPolicy>(trust.policy()),
                       .signer = trust.ci_signer(),
                       .emitter = {}});
    return store.put(key, artifact_of(key, 1'000), {}).has_value() ? 0 : 1;
  });
  EXPECT_EQ(published, 1) << "the store accepted an object that it could not store below its directory";
  EXPECT_TRUE(state_below(cache) == before) << "the victim's cache was changed";
  const int served = as(kVictim, [&] {
    const auto hit = disk(cache)->get(key, {});
    return hit && *hit ? 0 : 1;
  });
  EXPECT_EQ(served, 0);
}

TEST_F(HostileDirectories, ObjectsAreWritableByTheirOwnerOnly) {
  ASSERT_EQ(as(kVictim,
               [&] {
                 umask(0);
                 return DirectoryObjectStore(shared()).write(Bucket::Cas, sha256("b"), {"b"}, 10s).has_value() ? 0 : 1;
               }),
            0);
  for (const std::string& file : files_below(shared())) EXPECT_EQ(mode_of(file), 0644u) << file;
  // Another user of the directory can still replace an object by rename.
  EXPECT_EQ(as(kAttacker,
               [&] {
                 return DirectoryObjectStore(shared()).write(Bucket::Cas, sha256("b"), {"c"}, 10s).has_value() ? 0 : 1;
               }),
            0);
}

TEST_F(HostileDirectories, LinkedBucketIsNotWrittenThrough) {
  const std::string inside = home(kVictim) + "/inside";
  make_directory(inside, 0700, kVictim);
  ASSERT_EQ(attacker_links(inside, "ac"), 0);
  const auto before = state_below(home(kVictim));
  const int written = as(kVictim, [&] {
    int done = 0;
    for (const Resolution resolution : {Resolution::Kernel, Resolution::Walk}) {
      done += DirectoryObjectStore(shared(), resolution).write(Bucket::ActionCache, sha256("a"), {"a"}, 10s).has_value()
                  ? 1
                  : 0;
    }
    return done;
  });
  EXPECT_EQ(written, 0);
  EXPECT_TRUE(state_below(home(kVictim)) == before) << "something was created or changed below the victim's home";
}

// The attacker exchanges each new shard for a link to the victim's key in one call, as fast as possible.
TEST_F(HostileDirectories, ModeOfAnotherFileIsNeverChanged) {
  const std::string secret = home(kVictim) + "/key";
  make_file(secret, "secret", 0600, kVictim);
  const Digest name = sha256("raced");
  const std::string bucket = shared() + "/ac";
  const std::string shard = bucket + "/" + name.hex().substr(0, 2);
  make_directory(bucket, 0777, kAttacker);
  const pid_t attacker = fork();
  if (attacker == 0) {
    if (!become(kAttacker)) _exit(1);
    const std::string link = bucket + "/link";
    const std::string aside = bucket + "/aside-";
    (void)symlink(secret.c_str(), link.c_str());
    for (unsigned turn = 0;;) {
      if (renameat2(AT_FDCWD, shard.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE) != 0) continue;
      if (rmdir(link.c_str()) != 0) (void)rename(link.c_str(), (aside + std::to_string(turn++)).c_str());
      (void)rename(shard.c_str(), link.c_str());
    }
  }
  const int raced = as(kVictim, [&] {
    const auto end = std::chrono::steady_clock::now() + 2s;
    DirectoryObjectStore object_store(shared());
    while (std::chrono::steady_clock::now() < end) {
      (void)object_store.write(Bucket::ActionCache, name, {"a"}, 10s);
      if (mode_of(secret) != 0600) return 7;
    }
    return 0;
  });
  kill(attacker, SIGKILL);
  (void)waitpid(attacker, nullptr, 0);
  EXPECT_EQ(raced, 0) << "7: the mode of the victim's key was changed";
  EXPECT_EQ(mode_of(secret), 0600u);
}

TEST_F(HostileDirectories, GarbageCollectionRemovesNothingThroughLinks) {
  const std::string kiln = publish(KILN_PROGRAM);
  const std::string documents = make_documents();
  const auto before = state_below(documents);
  ASSERT_EQ(as(kAttacker,
               [&] {
                 umask(0);
                 for (const char* bucket : {"/ac", "/cas"}) {
                   if (mkdir((shared() + bucket).c_str(), 0777) != 0) return 1;
                   const std::string shard = shared() + bucket + "/" + sha256("some content").hex().substr(0, 2);
                   if (symlink(documents.c_str(), shard.c_str()) != 0) return 2;
                 }
                 return 0;
               }),
            0);
  const Ran collected = run(kVictim, {kiln, "remote", "gc", "--yes", "--max-size", "1", "--remote", shared()});
  EXPECT_TRUE(state_below(documents) == before) << "files of the victim were removed: " << collected.output;
  EXPECT_EQ(collected.code, 0) << collected.output;
}

TEST_F(HostileDirectories, GarbageCollectionThroughLinkedBucketIsNoOp) {
  const std::string kiln = publish(KILN_PROGRAM);
  const std::string top = home(kVictim) + "/top";
  make_directory(top, 0755, kVictim);
  const std::string documents = make_documents();
  std::filesystem::rename(documents, top + "/" + sha256("some content").hex().substr(0, 2));
  const auto before = state_below(top);
  ASSERT_EQ(attacker_links(top, "cas"), 0);
  const Ran collected = run(kVictim, {kiln, "remote", "gc", "--yes", "--remote", shared()});
  EXPECT_TRUE(state_below(top) == before) << "files of the victim were removed: " << collected.output;
}

TEST_F(HostileDirectories, GarbageCollectionKeepsUnrelatedFiles) {
  const std::string kiln = publish(KILN_PROGRAM);
  const std::string shard = shared() + "/cas/ab";
  make_directory(shared() + "/cas", 0777, kVictim);
  make_directory(shard, 0777, kVictim);
  const std::string elsewhere = std::string(64, 'c');  // a digest of another shard
  for (const std::string& name : {std::string(".tmp-notes"), std::string(".tmp-1-2-3.txt"), elsewhere}) {
    make_file(shard + "/" + name, "kept", 0644, kVictim);
    age(shard + "/" + name, 72h);
  }
  const auto before = state_below(shared());
  const Ran collected = run(kVictim, {kiln, "remote", "gc", "--yes", "--remote", shared()});
  EXPECT_EQ(collected.code, 0) << collected.output;
  EXPECT_TRUE(state_below(shared()) == before) << collected.output;
}

TEST_F(HostileDirectories, LeaseSweepRemovesNothingThroughLinks) {
  const std::string documents = make_documents();
  const auto before = state_below(documents);
  ASSERT_EQ(attacker_links(documents, "leases"), 0);
  (void)as(kVictim, [&] { return take_over(shared()); });
  EXPECT_TRUE(state_below(documents) == before) << "files of the victim were removed or created";
}

TEST_F(HostileDirectories, LeaseSweepKeepsUnrelatedFiles) {
  const std::string directory = shared() + "/leases";
  make_directory(directory, 0777, kVictim);
  const std::string digits = sha256("some content").hex();
  const std::string left_over = directory + "/" + digits + ".hedge-0.gone-host-1";
  make_file(left_over, "", 0644, kVictim);
  age(left_over, 25h);
  for (const std::string& name : {std::string("report.pdf"), digits + ".pdf", digits + ".hedge-", digits + ".hedge-x",
                                  digits + "0", digits.substr(1), digits + ".gone-", digits + ".hedge-now-1"}) {
    make_file(directory + "/" + name, "kept", 0644, kVictim);
    age(directory + "/" + name, 25h);
  }
  // The name of a lease, but not its content.
  make_file(directory + "/" + digits, std::string(4'096, 'x'), 0644, kVictim);
  age(directory + "/" + digits, 25h);
  EXPECT_EQ(as(kVictim, [&] { return take_over(shared()); }), 0);
  EXPECT_FALSE(std::filesystem::exists(left_over)) << "the leftover of a crash was not removed";
  EXPECT_EQ(files_below(directory).size(), 10u) << "files that kiln did not create were removed";
  EXPECT_TRUE(std::filesystem::exists(directory + "/report.pdf"));
}

TEST_F(HostileDirectories, LinkedLeaseDirectoryIsRejected) {
  const std::string inside = home(kVictim) + "/inside";
  make_directory(inside, 0700, kVictim);
  ASSERT_EQ(attacker_links(inside, "leases"), 0);
  const int taken = as(kVictim, [&] {
    for (const Resolution resolution : {Resolution::Kernel, Resolution::Walk}) {
      DirectoryLeases leases(shared(), system_clock(), resolution);
      const auto lease = leases.try_acquire(request_number(1), "owner", 5s, 1s);
      if (lease) return 1;
      if (lease.error().code != Code::Denied) return 2;
      if (leases.remaining_ttl(request_number(1), 1s).has_value()) return 3;
      if (leases.try_hedge(request_number(1), 1, 1s, 1s).has_value()) return 4;
    }
    return 0;
  });
  EXPECT_EQ(taken, 0);
  EXPECT_TRUE(state_below(inside).empty());
}

TEST_F(HostileDirectories, ParentDirectoriesAreCreatedPrivate) {
  const std::string claimed = home(kVictim) + "/a/.cache";
  const std::string stored = home(kVictim) + "/b/.cache";
  const std::string with_slash = home(kVictim) + "/c/.cache";
  ASSERT_EQ(as(kVictim,
               [&] {
                 umask(022);
                 LocalClaims claims = LocalClaims::for_cache(claimed + "/kiln");
                 if (claims.acquire(request_number(1), 0ms, {}).outcome != Claims::Outcome::Acquired) return 1;
                 LocalClaims others = LocalClaims::for_cache(with_slash + "/kiln/");
                 if (others.acquire(request_number(1), 0ms, {}).outcome != Claims::Outcome::Acquired) return 2;
                 return disk(stored + "/kiln")->put(key_number(1), artifact_of(key_number(1), 10), {}).has_value() ? 0
                                                                                                                   : 3;
               }),
            0);
  for (const std::string& parent : {claimed, stored, with_slash}) {
    EXPECT_EQ(mode_of(parent_path(parent)), 0700u) << parent;
    EXPECT_EQ(mode_of(parent), 0700u) << parent;
    EXPECT_EQ(mode_of(parent + "/kiln"), 0755u) << parent;  // caches in container images need this mode
    EXPECT_EQ(mode_of(parent + "/kiln/v1"), 0755u) << parent;
  }
}

// Another user can give any directory of the victim the name of a temporary one.
TEST_F(HostileDirectories, SweepRemovesNothingThatOthersCanRename) {
  const std::string project = shared() + "/project";
  make_directory(project, 0700, kVictim);
  make_file(project + "/thesis.tex", "kept", 0600, kVictim);
  const std::string renamed = shared() + "/kiln-command-aB3dE6";
  ASSERT_EQ(as(kAttacker, [&] { return rename(project.c_str(), renamed.c_str()) == 0 ? 0 : 1; }), 0);
  EXPECT_EQ(as(kVictim,
               [&] {
                 CommandWorkDir::remove_stale(shared());
                 return 0;
               }),
            0);
  EXPECT_TRUE(std::filesystem::exists(renamed + "/thesis.tex"));
}

TEST_F(HostileDirectories, CommandSweepKeepsUnrelatedDirectories) {
  ASSERT_EQ(chmod(shared().c_str(), 01777), 0);
  const std::string documents = make_documents();
  const std::string notes = shared() + "/kiln-command-notes-of-mine";
  const std::string left_over = shared() + "/kiln-command-aB3dE6";
  for (const std::string& directory : {notes, left_over}) {
    make_directory(directory, 0700, kVictim);
    make_directory(directory + "/work", 0700, kVictim);
    make_file(directory + "/work/a.cu", "kept", 0600, kVictim);
    ASSERT_EQ(symlink(documents.c_str(), (directory + "/work/link").c_str()), 0);
    age(directory, 72h);
  }
  const auto before = state_below(documents);
  ASSERT_EQ(attacker_links(documents, "kiln-command-abcdef"), 0);
  EXPECT_EQ(as(kVictim,
               [&] {
                 CommandWorkDir::remove_stale(shared());
                 return 0;
               }),
            0);
  EXPECT_FALSE(std::filesystem::exists(left_over));
  EXPECT_TRUE(std::filesystem::exists(notes + "/work/a.cu"));
  EXPECT_TRUE(state_below(documents) == before);
}

// In a directory without the sticky bit, another user renames the directory of a run and puts another in its place.
TEST_F(HostileDirectories, CommandsRunWhereOthersCannotRename) {
  make_directory(room() + "/sticky", 01777, 0);
  make_directory(room() + "/of-attacker", 01777, kAttacker);
  const int placed = as(kVictim, [&] {
    setenv("XDG_RUNTIME_DIR", home(kVictim).c_str(), 1);
    const auto parent = [](const std::string& wanted) { return safe_temporary_parent(wanted).value(); };
    if (parent(home(kVictim)) != home(kVictim) || parent(room() + "/sticky") != room() + "/sticky") return 1;
    if (parent(shared()) != home(kVictim) + "/kiln") return 2;
    return parent(room() + "/of-attacker") == home(kVictim) + "/kiln" ? 0 : 3;
  });
  EXPECT_EQ(placed, 0);
}

// The programs of an OpenCL driver write code to the temporary directory of their worker.
TEST_F(HostileDirectories, WorkersWriteWhereOthersCannotRename) {
  const std::string program = room() + "/worker";
  const std::string seen = home(kVictim) + "/seen";
  make_file(program, "#!/bin/sh\necho \"$TMPDIR\" >" + seen + ".new && mv " + seen + ".new " + seen + "\n", 0755, 0);
  const int wrote = as(kVictim, [&] {
    setenv("XDG_RUNTIME_DIR", home(kVictim).c_str(), 1);
    setenv("TMPDIR", shared().c_str(), 1);
    const auto worker = Worker::start({program, {"PATH=/usr/bin:/bin"}, std::uint64_t{1} << 30, true});
    if (!worker) return 1;
    for (int i = 0; i < 1000 && !exists(seen); ++i) usleep(10'000);
    return read_text(seen).starts_with(home(kVictim) + "/kiln/kiln-worker-") ? 0 : 2;
  });
  EXPECT_EQ(wrote, 0);
  EXPECT_TRUE(std::filesystem::is_empty(shared()));
}

// Another user creates the host-local directory of the victim first, as a link to documents of the victim.
TEST_F(HostileDirectories, StatusIsNotReadThroughALink) {
  const std::string documents = home(kVictim) + "/documents";
  const std::string note = documents + "/status/.note.status";
  make_directory(documents, 0700, kVictim);
  make_directory(documents + "/status", 0700, kVictim);
  make_file(note, "kept", 0600, kVictim);
  age(note, 72h);
  ASSERT_EQ(attacker_links(documents, "kiln"), 0);
  EXPECT_EQ(as(kVictim,
               [&] {
                 setenv("XDG_RUNTIME_DIR", shared().c_str(), 1);
                 const auto listing = read_status_directory(status_directories({}).front());
                 return !listing && listing.error().code == Code::Denied ? 0 : 1;
               }),
            0);
  EXPECT_EQ(read_text(note), "kept");
}

}  // namespace
}  // namespace kiln::test
