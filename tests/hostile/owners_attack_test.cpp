// SPDX-License-Identifier: Apache-2.0
// Files that another user owns or can write: kiln applies no configuration, trusts no policy, serves no cache entry and
// sends no secret from such a file.
#include <sys/mount.h>

#include <filesystem>

#include "cache/disk_store.hpp"
#include "cache/entry_format.hpp"
#include "hostile/two_users.hpp"
#include "remote/redis/redis_leases.hpp"
#include "remote/secret_file.hpp"
#include "session/config/member_reader.hpp"
#include "session/config/trust_policy_file.hpp"
#include "support/fixtures/artifacts.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/processes/private_mounts.hpp"
#include "worker/pch_cache.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKey = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

// Exit codes of the children of as().
constexpr int kRead = 10;
constexpr int kRejected = 11;
constexpr int kAbsent = 12;
constexpr int kFailed = 13;

int code_of(const Error& error) { return error.code == Code::Denied ? kRejected : kFailed; }

int guarded(const std::string& path) {
  const auto text = read_protected_file(path);
  if (!text) return code_of(text.error());
  return *text ? kRead : kAbsent;
}

int secret(const std::string& path) {
  const auto line = read_secret(path);
  if (!line) return code_of(line.error());
  return *line ? kRead : kAbsent;
}

class HostileOwners : public TwoUsers {
 protected:
  /// Runs a program as root with only HOME, PATH and the given variables in its environment. Returns its output.
  std::string run_as_root(const std::string& home, const std::string& words) const {
    (void)run_shell("cd '" + room() + "' && env -i HOME='" + home + "' PATH=/usr/bin:/bin " + words + " >'" + room() +
                    "/output' 2>&1 </dev/null");
    return read_text(room() + "/output");
  }

  /// Creates a cache directory with one entry as `owner`.
  std::string make_cache(const std::string& name, uid_t owner) const {
    const std::string root = room() + "/" + name;
    make_directory(root, 0755, owner);
    const int made = run_in_child([&] {
      if (owner != 0 && !become(owner)) return 1;
      const auto store = DiskStore::open({.root = root}).value();
      return store->put(key_number(1), artifact_of(key_number(1), 1'000), {}).has_value() &&
                     store->add_dependency_set(request_number(1), dependency_set_number(1), {}).has_value()
                 ? 0
                 : 2;
    });
    EXPECT_EQ(made, 0) << name;
    return root;
  }
  static std::string file_of(const std::string& root, const std::string& kind) {
    for (const std::string& file : files_below(root + "/v1/" + kind)) return file;
    ADD_FAILURE() << "no file of " << kind << " in " << root;
    return {};
  }
  /// Returns what the victim gets from a cache: kRead for the entry, kAbsent for none; plus 1 if it gets the hint.
  int served(const std::string& root, std::vector<uid_t> trusted = {}) const {
    return as(kVictim, [&] {
      const auto store = DiskStore::open({.root = root, .read_only = true, .trusted_owners = trusted}).value();
      const auto hit = store->get(key_number(1), {});
      return hit && *hit ? kRead : kAbsent;
    });
  }
  bool gives_hints(const std::string& root) const {
    return as(kVictim, [&] {
             const auto store = DiskStore::open({.root = root, .read_only = true}).value();
             const auto dependency_sets = store->dependency_sets(request_number(1), 1, {});
             return dependency_sets && !dependency_sets->empty() ? 1 : 0;
           }) == 1;
  }
};

TEST_F(HostileOwners, RootIgnoresConfigurationOfAnotherUser) {
  const std::string library = publish(KILN_MARKING_LIBRARY);
  const std::string kiln = publish(KILN_PROGRAM);
  publish(KILN_WORKER);
  const std::string home = this->home(kAttacker);
  for (const char* directory : {"/.config", "/.config/kiln"}) make_directory(home + directory, 0755, kAttacker);
  // In this process, because the library could not create its file from a worker.
  make_file(home + "/.config/kiln/config.toml", "nvrtc = \"" + library + "\"\n[compile]\nin_process = \"closed\"\n",
            0644, kAttacker);
  make_file(room() + "/k.cu", "extern \"C\" __global__ void k(float* x) { *x = 1; }\n", 0644, 0);
  // The attack works on the owner of the configuration file.
  ASSERT_NE(run(kAttacker, {kiln, "compile", room() + "/k.cu", "-e", "k", "--arch", "sm_80"}).code, 0);
  ASSERT_TRUE(fs::exists(home + "/loaded")) << "the library creates no file, so the test proves nothing";
  fs::remove(home + "/loaded");

  const std::string output = run_as_root(home, "'" + kiln + "' compile k.cu -e k --arch sm_80");
  EXPECT_FALSE(fs::exists(home + "/loaded")) << output;
  EXPECT_NE(output.find("belongs to user " + std::to_string(kAttacker)), std::string::npos) << output;
}

TEST_F(HostileOwners, PolicyOfAnotherUserIsNotTrusted) {
  const std::string policy = room() + "/policy.toml";
  make_file(policy, std::string("[[key]]\npublic = \"kiln-public-1:") + kKey + "\"\nnamespaces = [\"*\"]\n", 0644,
            kAttacker);
  const auto read = [&] {
    const auto trusted = read_trust_policy(policy);
    return trusted ? kRead : code_of(trusted.error());
  };
  EXPECT_EQ(as(kVictim, read), kRejected);
  EXPECT_EQ(read(), kRejected) << "by root";
  for (const uid_t owner : {kVictim, uid_t{0}}) {
    ASSERT_EQ(chown(policy.c_str(), owner, owner), 0);
    EXPECT_EQ(as(kVictim, read), kRead) << owner;
  }
}

TEST_F(HostileOwners, FileBelowDirectoryWritableByOthersIsRejected) {
  const std::string directory = home(kVictim) + "/folder";
  const std::string file = directory + "/below/config.toml";
  make_directory(directory, 0755, kVictim);
  make_directory(directory + "/below", 0755, kVictim);
  make_file(file, "disable = true\n", 0644, kVictim);
  make_directory(home(kVictim) + "/safe", 0755, kVictim);
  fs::create_symlink(file, home(kVictim) + "/safe/link.toml");
  ASSERT_EQ(lchown((home(kVictim) + "/safe/link.toml").c_str(), kVictim, kVictim), 0);
  const std::vector<std::string> names = {file, home(kVictim) + "/safe/link.toml", "folder/below/config.toml"};
  for (const std::string& name : names) {
    EXPECT_EQ(as(kVictim, [&] { return guarded(name); }), kRead) << name;
  }
  for (const mode_t mode : {0777U, 0775U, 01777U}) {
    ASSERT_EQ(chmod(directory.c_str(), mode), 0);
    for (const std::string& name : names) {
      EXPECT_EQ(as(kVictim, [&] { return guarded(name); }), kRejected) << name << " " << mode;
    }
  }
  make_directory(directory, 0755, kAttacker);
  for (const std::string& name : names) EXPECT_EQ(as(kVictim, [&] { return guarded(name); }), kRejected) << name;
  make_directory(directory, 01777, 0);  // like /tmp
  for (const std::string& name : names) EXPECT_EQ(as(kVictim, [&] { return guarded(name); }), kRead) << name;
  ASSERT_EQ(chmod(file.c_str(), 0664), 0);
  for (const std::string& name : names) EXPECT_EQ(as(kVictim, [&] { return guarded(name); }), kRejected) << name;
}

TEST_F(HostileOwners, LinkOfAnotherUserInTemporaryDirectoryIsRejected) {
  make_directory(room() + "/tmp", 01777, 0);
  make_file(home(kVictim) + "/config.toml", "disable = true\n", 0644, kVictim);
  const std::string link = room() + "/tmp/config.toml";
  fs::create_symlink(home(kVictim) + "/config.toml", link);
  ASSERT_EQ(lchown(link.c_str(), kVictim, kVictim), 0);
  EXPECT_EQ(as(kVictim, [&] { return guarded(link); }), kRead);
  ASSERT_EQ(lchown(link.c_str(), kAttacker, kAttacker), 0);
  EXPECT_EQ(as(kVictim, [&] { return guarded(link); }), kRejected);
}

TEST_F(HostileOwners, MissingFileOfAnotherUserCausesNoWarning) {
  make_directory(room() + "/open", 0777, kAttacker);
  EXPECT_EQ(as(kVictim, [&] { return guarded(room() + "/open/config.toml"); }), kAbsent);
  EXPECT_EQ(guarded(home(kAttacker) + "/.config/kiln/config.toml"), kAbsent);
}

TEST_F(HostileOwners, ConfigMapOnAReadOnlyMountIsRead) {
  if (const Status own = enter_own_mounts(); !own) GTEST_SKIP() << own.error().message;
  const std::string directory = room() + "/etc-kiln";
  make_directory(directory, 0755, 0);
  const Mounted mounted("-t tmpfs -o mode=0777", "tmpfs", directory);
  if (!mounted) GTEST_SKIP() << "a tmpfs cannot be mounted here";
  // The layout in which a kubelet writes a ConfigMap.
  make_directory(directory + "/..2026_11_17", 0777, 0);
  make_file(directory + "/..2026_11_17/config.toml", "disable = true\n", 0644, 0);
  fs::create_directory_symlink("..2026_11_17", directory + "/..data");
  fs::create_symlink("..data/config.toml", directory + "/config.toml");
  EXPECT_EQ(as(kVictim, [&] { return guarded(directory + "/config.toml"); }), kRejected)
      << "others can still write to it";
  ASSERT_TRUE(run_shell("mount -o remount,ro '" + directory + "'"));
  EXPECT_EQ(as(kVictim, [&] { return guarded(directory + "/config.toml"); }), kRead);
  EXPECT_EQ(guarded(directory + "/config.toml"), kRead) << "by root";
}

TEST_F(HostileOwners, EntryOfAnotherUserIsNotServed) {
  const std::string root = make_cache("cache", kVictim);
  ASSERT_EQ(served(root), kRead);
  ASSERT_TRUE(gives_hints(root));
  ASSERT_EQ(chown(file_of(root, "entries").c_str(), kAttacker, kAttacker), 0);
  EXPECT_EQ(served(root), kAbsent);
  EXPECT_EQ(served(root, {kAttacker}), kRead) << "listed in cache.trusted_users";
  ASSERT_EQ(chown(file_of(root, "hints").c_str(), kAttacker, kAttacker), 0);
  EXPECT_FALSE(gives_hints(root));

  // In the victim's own cache the entry is removed, the event gives the reason, and the entry is stored again.
  EXPECT_EQ(as(kVictim,
               [&] {
                 EventLog events;
                 const auto store = DiskStore::open({.root = root}, events.emitter()).value();
                 const auto hit = store->get(key_number(1), {});
                 if (!hit || *hit) return 1;
                 const auto dropped = events.of(Event::Kind::EntryDropped);
                 if (dropped.size() != 1 || dropped[0].message.find("another user") == std::string::npos) return 2;
                 if (!files_below(root + "/v1/entries").empty()) return 3;
                 return store->put(key_number(1), artifact_of(key_number(1), 1'000), {}).has_value() ? 0 : 4;
               }),
            0);
  EXPECT_EQ(served(root), kRead);
}

TEST_F(HostileOwners, WritableEntryIsNotServed) {
  const std::string root = make_cache("cache", kVictim);
  const std::string entry = file_of(root, "entries");
  for (const mode_t mode : {0664U, 0646U, 0666U}) {
    ASSERT_EQ(chmod(entry.c_str(), mode), 0);
    EXPECT_EQ(served(root), kAbsent) << mode;
  }
  ASSERT_EQ(chmod(entry.c_str(), 0444), 0);
  EXPECT_EQ(served(root), kRead);
}

TEST_F(HostileOwners, ImageCacheOfRootServesAllUsers) {
  const std::string root = make_cache("image", 0);
  EXPECT_EQ(served(root), kRead);
  EXPECT_TRUE(gives_hints(root));
  const std::string lent = make_cache("lent", kAttacker);
  EXPECT_EQ(served(lent), kAbsent);
  EXPECT_EQ(served(lent, {kAttacker}), kRead) << "listed in cache.trusted_users";
}

TEST_F(HostileOwners, PrecompiledHeaderOfAnotherUserIsNotUsed) {
  const std::string directory = home(kVictim) + "/pch";
  const auto in_bucket = [&](const std::function<int(PchCache&)>& work) {
    return as(kVictim, [&] {
      PchCache bucket({directory, std::uint64_t{1} << 20, "this host"});
      return work(bucket);
    });
  };
  const auto make = [&] {
    return in_bucket([&](PchCache& bucket) {
      umask(0);
      const auto making = bucket.try_begin_write(key_number(1).digest);
      if (making == nullptr) return 1;
      write_text(making->path(), "precompiled");
      Pch pch;
      pch.size = 11;
      return making->publish(pch).has_value() ? 0 : 2;
    });
  };
  const auto found = [&] {
    return in_bucket([&](PchCache& bucket) { return bucket.find(key_number(1).digest) ? kRead : kAbsent; });
  };
  for (const char* suffix : {".pch", ".kpch"}) {
    ASSERT_EQ(make(), 0);
    ASSERT_EQ(found(), kRead) << "published under any umask";
    const std::string file = directory + "/" + key_number(1).digest.hex() + suffix;
    ASSERT_EQ(chown(file.c_str(), kAttacker, kAttacker), 0) << file;
    EXPECT_EQ(found(), kAbsent) << file;
    ASSERT_EQ(make(), 0);
    ASSERT_EQ(chmod(file.c_str(), 0666), 0) << file;
    EXPECT_EQ(found(), kAbsent) << file;
  }
}

TEST_F(HostileOwners, SignedBundleContainsNoCodeFromCache) {
  const std::string kiln = publish(KILN_PROGRAM);
  publish(KILN_WORKER);
  const std::string home = this->home(kVictim);
  make_file(home + "/k.cu", "extern \"C\" __global__ void k(float* x) { *x = 1; }\n", 0644, kVictim);
  make_file(
      home + "/kiln.toml",
      "namespace = \"acme\"\nepoch = 1\narchitectures = [\"sm_80\"]\n[[unit]]\nsource = \"k.cu\"\nentries = [\"k\"]\n",
      0644, kVictim);
  const std::map<std::string, std::string> variables = {{"KILN_CACHE_DIR", home + "/cache"}};
  const Ran first = run(kVictim, {kiln, "bundle", "create", "kiln.toml", "-o", "first.kiln"}, variables);
  ASSERT_EQ(first.code, 0) << first.output;
  const Ran key = run(kVictim, {kiln, "key", "generate", "-o", "ours.key"}, variables);
  ASSERT_EQ(key.code, 0) << key.output;

  // The entry is forged with the right checksum, which needs no key.
  const std::string entry = file_of(home + "/cache", "entries");
  const Bytes whole = Bytes::of(read_text(entry));
  const auto header = decode_entry_header({whole.data(), whole.size()});
  ASSERT_TRUE(header.has_value());
  Artifact forged = decode_entry(header->key, whole).value();
  const std::string evil = "EVIL CODE OF ANOTHER USER, THAT NO COMPILER MADE";
  forged.bytes = Bytes::of(evil);
  make_file(entry, encode_entry_header(header->key, forged) + evil, 0644, kVictim);

  const auto code_in = [&](const std::string& bundle) {
    const Ran listed = run(kVictim, {kiln, "bundle", "ls", bundle, "--json"}, variables);
    return listed.output;
  };
  const Ran plain = run(kVictim, {kiln, "bundle", "create", "kiln.toml", "-o", "plain.kiln"}, variables);
  ASSERT_EQ(plain.code, 0) << plain.output;
  EXPECT_NE(read_text(home + "/plain.kiln"), read_text(home + "/first.kiln"))
      << "the forged entry was not used, so the test proves nothing";
  const Ran ran =
      run(kVictim, {kiln, "bundle", "create", "kiln.toml", "-o", "signed.kiln", "--key", "ours.key"}, variables);
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_NE(ran.output.find("compiled"), std::string::npos) << ran.output;
  const auto size_in = [](const std::string& json) {
    const std::size_t at = json.find("\"artifacts\"");
    return at == std::string::npos ? json : json.substr(at);
  };
  EXPECT_EQ(size_in(code_in("signed.kiln")), size_in(code_in("first.kiln")));
  EXPECT_NE(size_in(code_in("plain.kiln")), size_in(code_in("first.kiln")));
}

TEST_F(HostileOwners, TokenFileOwnedOrAccessibleByOthersIsRejected) {
  const std::string file = room() + "/token";
  make_file(file, "s3cret\n", 0600, kVictim);
  const auto read = [&] { return secret(file); };
  EXPECT_EQ(as(kVictim, read), kRead);
  for (const mode_t mode : {0644U, 0640U, 0620U, 0602U}) {
    ASSERT_EQ(chmod(file.c_str(), mode), 0);
    EXPECT_EQ(as(kVictim, read), kRejected) << mode;
  }
  make_file(file, "s3cret\n", 0600, kAttacker);
  EXPECT_EQ(secret(file), kRejected) << "by root";
  make_file(file, "s3cret\n", 0644, kAttacker);
  EXPECT_EQ(as(kVictim, read), kRejected);
  // A secret that root mounts for a group, as a kubelet does. Root decides who can read it.
  make_file(file, "s3cret\n", 0440, 0);
  ASSERT_EQ(chown(file.c_str(), 0, kVictim), 0);
  EXPECT_EQ(as(kVictim, read), kRead);
  ASSERT_EQ(chmod(file.c_str(), 0444), 0);
  EXPECT_EQ(as(kVictim, read), kRejected);
  // The same function reads a Redis password and an HTTP token. The same rules apply to a signing key.
  make_file(file, std::string("kiln-secret-1:") + kKey + "\n", 0600, kAttacker);
  const auto key = SecretKey::read(file);
  EXPECT_EQ(key ? kRead : code_of(key.error()), kRejected);
}

TEST_F(HostileOwners, RedisPasswordIsNotSentUnencrypted) {
  const std::string file = room() + "/password";
  make_file(file, "s3cret\n", 0600, 0);
  for (const char* url : {"redis://192.0.2.1", "redis://leases.example:6379", "redis://user@[2001:db8::1]:7/2",
                          "redis://127.0.0.1.example", "redis://localhost.example"}) {
    const auto table = open_redis_leases({url, file});
    ASSERT_FALSE(table.has_value()) << url;
    EXPECT_EQ(table.error().code, Code::InvalidArgument) << url;
    EXPECT_NE(table.error().message.find("docs/how-to/share-a-cache.md"), std::string::npos) << table.error().message;
  }
  for (const char* url : {"redis://127.0.0.1", "redis://localhost:7", "redis://[::1]", "redis://user@127.1.2.3"}) {
    EXPECT_TRUE(open_redis_leases({url, file}).has_value()) << url;
  }
  EXPECT_TRUE(open_redis_leases({"redis://192.0.2.1", ""}).has_value()) << "no secret without a password";
}

}  // namespace
}  // namespace kiln::test
