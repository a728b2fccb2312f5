// SPDX-License-Identifier: Apache-2.0
#include "session/config/config.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "session/config/settings.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;

// A private directory with a home directory, and an environment without KILN_ variables.
class ConfigTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "kiln-config-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    clearenv();
    setenv("HOME", (root_ / "home").c_str(), 1);
    umask(022);
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string write(const std::string& name, const std::string& text) {
    const fs::path path = root_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }
  std::string write_user_file(const std::string& text) { return write("home/.config/kiln/config.toml", text); }
  std::string write_system_file(const std::string& text) { return write("etc/config.toml", text); }

  Config load(const SessionOptions& options = {}) {
    warnings_.clear();
    const EventEmitter emitter([this](const Event& event) { warnings_.push_back(event); });
    return Config::load(options, emitter, {(root_ / "etc/config.toml").string()});
  }
  static Setting setting(const Config& config, const std::string& name) {
    for (const Setting& each : config.settings) {
      if (each.name == name) return each;
    }
    ADD_FAILURE() << "no setting " << name;
    return {};
  }
  std::string only_warning() const {
    EXPECT_EQ(warnings_.size(), 1u);
    if (warnings_.size() != 1) return {};
    EXPECT_EQ(warnings_.front().kind, Event::Kind::ConfigWarning);
    return warnings_.front().message;
  }

  fs::path root_;
  std::vector<Event> warnings_;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(ConfigTest, DefaultsApplyWithoutFilesAndVariables) {
  const Config config = load();
  EXPECT_EQ(config.cache_path, std::vector<std::string>{(root_ / "home/.cache/kiln").string()});
  EXPECT_EQ(config.cache_max_bytes, 20ull << 30);
  EXPECT_TRUE(config.cache_trusted_users.empty());
  EXPECT_FALSE(config.disable);
  EXPECT_TRUE(config.may_compile);
  EXPECT_EQ(config.nvrtc + config.cccl + config.worker_path, "");
  EXPECT_EQ(config.worker_memory, 4ull << 30);
  EXPECT_EQ(config.worker_time_limit, std::chrono::seconds(600));
  EXPECT_EQ(config.jobs, std::nullopt);
  EXPECT_FALSE(config.digest_always);
  EXPECT_EQ(config.pch_mode, std::nullopt);
  EXPECT_EQ(config.pch_max_bytes, 2ull << 30);
  EXPECT_TRUE(warnings_.empty());
  ASSERT_EQ(config.settings.size(), all_settings().size());
  for (const Setting& each : config.settings) {
    EXPECT_EQ(each.origin, each.name == "cache.path" ? "cache.dir" : "default") << each.name;
  }
  EXPECT_FALSE(fs::exists(root_ / "home")) << "loading a configuration must not create a directory";
}

TEST_F(ConfigTest, DefaultsOfTableAreValid) {
  for (const SettingSpec& kind : all_settings()) {
    Config config;
    EXPECT_TRUE(kind.apply(config, kind.default_value).has_value()) << kind.name;
  }
}

TEST_F(ConfigTest, LaterSourcesOverrideEarlierOnes) {
  SessionOptions options;
  options.settings["cache.max_size"] = "1M";
  EXPECT_EQ(load(options).cache_max_bytes, 1ull << 20);
  EXPECT_EQ(setting(load(options), "cache.max_size").origin, "program");

  const std::string system = write_system_file("[cache]\nmax_size = \"2M\"\n");
  EXPECT_EQ(load(options).cache_max_bytes, 2ull << 20);
  EXPECT_EQ(setting(load(options), "cache.max_size").origin, system + ":2");

  write_user_file("cache.max_size = \"3M\"\n");
  EXPECT_EQ(load(options).cache_max_bytes, 3ull << 20);

  const std::string named = write("named.toml", "\n\ncache = {max_size = 4194304}\n");
  setenv("KILN_CONFIG", named.c_str(), 1);
  EXPECT_EQ(load(options).cache_max_bytes, 4ull << 20);
  EXPECT_EQ(setting(load(options), "cache.max_size").origin, named + ":3");

  setenv("KILN_CACHE_MAX_SIZE", "5M", 1);
  const Config config = load(options);
  EXPECT_EQ(config.cache_max_bytes, 5ull << 20);
  EXPECT_EQ(setting(config, "cache.max_size").origin, "KILN_CACHE_MAX_SIZE");
  EXPECT_EQ(setting(config, "cache.max_size").value, "5M");
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(ConfigTest, FileSetsEverySetting) {
  write_user_file(
      "disable = true\ncompile = \"never\"\nnvrtc = \"/n.so\"\ncccl = \"/c\"\n'worker.path' = \"/w\"\n"
      "'worker.memory' = '3G'\n'worker.time_limit' = 90\njobs = 5\ndigest = 'always'\n'pch.mode' = false\n"
      "'pch.max_size' = '1G'\n"
      "[cache]\npath = [\"/a\", \"/b\"]\nmax_size = \"1G\"\ntrusted_users = [12, 34]\n");
  const Config config = load();
  EXPECT_TRUE(warnings_.empty());
  EXPECT_TRUE(config.disable);
  EXPECT_FALSE(config.may_compile);
  EXPECT_EQ(config.nvrtc, "/n.so");
  EXPECT_EQ(config.cccl, "/c");
  EXPECT_EQ(config.worker_path, "/w");
  EXPECT_EQ(config.worker_memory, 3ull << 30);
  EXPECT_EQ(config.worker_time_limit, std::chrono::seconds(90));
  EXPECT_EQ(config.jobs, 5u);
  EXPECT_TRUE(config.digest_always);
  EXPECT_EQ(config.pch_mode, false);
  EXPECT_EQ(config.pch_max_bytes, 1ull << 30);
  EXPECT_EQ(config.cache_path, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(config.cache_trusted_users, (std::vector<unsigned>{12, 34}));
}

TEST_F(ConfigTest, TablesDottedKeysAndQuotedKeysSetTheSame) {
  for (const char* text : {"[worker]\npath = '/w'\nmemory = '1G'\n[pch]\nmode = true\nmax_size = 1024\n"
                           "[trust]\npolicy = '/t'\nunsigned = true\n[remote]\nurl = '/r'\nsigning_key = '/k'\n"
                           "[lease]\nurl = '/l'\nttl = 7\n[bundle]\nmatch = 'exact'\n",
                           "worker.path = '/w'\npch.mode = true\ntrust.policy = '/t'\nremote.url = '/r'\n"
                           "lease.url = '/l'\nworker.memory = '1G'\npch.max_size = 1024\ntrust.unsigned = true\n"
                           "remote.signing_key = '/k'\nlease.ttl = 7\nbundle.match = 'exact'\n",
                           "'worker.path' = '/w'\n'pch.mode' = true\n'trust.policy' = '/t'\n'remote.url' = '/r'\n"
                           "'lease.url' = '/l'\n'worker.memory' = '1G'\n'remote.signing_key' = '/k'\n"
                           "'bundle.match' = 'exact'\n[pch]\nmax_size = 1024\n[trust]\nunsigned = true\n"
                           "[lease]\nttl = 7\n"}) {
    write_user_file(text);
    const Config config = load();
    EXPECT_TRUE(warnings_.empty()) << text;
    EXPECT_EQ(config.worker_path, "/w") << text;
    EXPECT_EQ(config.worker_memory, 1ull << 30) << text;
    EXPECT_EQ(config.pch_mode, true) << text;
    EXPECT_EQ(config.pch_max_bytes, 1024u) << text;
    EXPECT_EQ(config.trust_policy, "/t") << text;
    EXPECT_TRUE(config.trust_unsigned) << text;
    EXPECT_EQ(config.remote_url, "/r") << text;
    EXPECT_EQ(config.remote_signing_key, "/k") << text;
    EXPECT_EQ(config.lease_url, "/l") << text;
    EXPECT_EQ(config.lease_ttl, std::chrono::seconds(7)) << text;
    EXPECT_TRUE(config.bundles_exact) << text;
  }
}

TEST_F(ConfigTest, OriginIsAWholeComponentOfAPath) {
  const std::string program = fs::read_symlink("/proc/self/exe").parent_path().string();
  const auto bundle = [this](const std::string& text) {
    setenv("KILN_BUNDLES", text.c_str(), 1);
    return load().bundles.at(0);
  };
  EXPECT_EQ(bundle("$ORIGIN/app.kiln"), program + "/app.kiln");
  EXPECT_EQ(bundle("$ORIGIN"), program);
  EXPECT_EQ(bundle("$ORIGINAL/app.kiln"), (fs::current_path() / "$ORIGINAL/app.kiln").string());
}

TEST_F(ConfigTest, MainSettingOfGroupHasVariableOfGroup) {
  const std::pair<const char*, const char*> names[] = {{"worker.path", "KILN_WORKER"},
                                                       {"pch.mode", "KILN_PCH"},
                                                       {"trust.policy", "KILN_TRUST"},
                                                       {"remote.url", "KILN_REMOTE"},
                                                       {"lease.url", "KILN_LEASE"}};
  for (const auto& [name, variable] : names) {
    const SettingSpec* const spec = find_setting(name);
    ASSERT_NE(spec, nullptr) << name;
    EXPECT_STREQ(spec->variable, variable);
  }
}

TEST_F(ConfigTest, JobsAreNumberOrAuto) {
  setenv("KILN_JOBS", "0", 1);
  EXPECT_EQ(load().jobs, 0u);
  setenv("KILN_JOBS", "4096", 1);
  EXPECT_EQ(load().jobs, 4096u);
  SessionOptions options;
  options.settings["jobs"] = "3";
  setenv("KILN_JOBS", "auto", 1);
  EXPECT_EQ(load(options).jobs, std::nullopt) << "a stronger source can restore automatic";
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(ConfigTest, PchIsOnOffOrAuto) {
  const std::pair<const char*, std::optional<bool>> modes[] = {
      {"on", true}, {"1", true}, {"off", false}, {"auto", std::nullopt}};
  for (const auto& [text, pch] : modes) {
    setenv("KILN_PCH", text, 1);
    EXPECT_EQ(load().pch_mode, pch) << text;
  }
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(ConfigTest, LockedSettingKeepsProgramValueAndReportsOverride) {
  SessionOptions options;
  options.settings["compile"] = "never";
  options.locked = {"compile"};
  setenv("KILN_COMPILE", "allowed", 1);
  const Config config = load(options);
  EXPECT_FALSE(config.may_compile);
  EXPECT_TRUE(setting(config, "compile").locked);
  EXPECT_EQ(setting(config, "compile").origin, "program");
  const std::string warning = only_warning();
  EXPECT_TRUE(contains(warning, "KILN_COMPILE")) << warning;
  EXPECT_TRUE(contains(warning, "locked compile")) << warning;
}

TEST_F(ConfigTest, LockedCacheDirCannotBeBypassedByCachePath) {
  SessionOptions options;
  options.settings["cache.dir"] = "/program";
  options.locked = {"cache.dir"};
  setenv("KILN_CACHE_PATH", "/other:/more", 1);
  EXPECT_EQ(load(options).cache_path, std::vector<std::string>{"/program"});
  EXPECT_TRUE(contains(only_warning(), "locked cache.dir"));
}

TEST_F(ConfigTest, CachePathOverridesCacheDirOfSameSource) {
  setenv("KILN_CACHE_PATH", "/a::/b", 1);
  setenv("KILN_CACHE_DIR", "/c", 1);
  const Config config = load();
  EXPECT_EQ(config.cache_path, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(setting(config, "cache.dir").value, "/a");
  EXPECT_EQ(setting(config, "cache.dir").origin, "cache.path");
}

TEST_F(ConfigTest, CacheDirOfStrongerSourceOverridesCachePath) {
  write_user_file("cache.path = [\"/a\", \"/b\"]\n");
  setenv("KILN_CACHE_DIR", "/c", 1);
  const Config config = load();
  EXPECT_EQ(config.cache_path, std::vector<std::string>{"/c"});
  EXPECT_EQ(setting(config, "cache.path").origin, "cache.dir");
}

TEST_F(ConfigTest, UnknownKeyWarnsWithLineAndSuggestion) {
  const std::string path = write_user_file("[cache]\n\nmaxsize = \"1G\"\n");
  EXPECT_EQ(load().cache_max_bytes, 20ull << 30);
  const std::string warning = only_warning();
  EXPECT_TRUE(contains(warning, path + ":3")) << warning;
  EXPECT_TRUE(contains(warning, "did you mean cache.max_size?")) << warning;
}

TEST_F(ConfigTest, UnknownVariableWarnsWithSuggestion) {
  setenv("KILN_CACHEDIR", "/a", 1);
  load();
  EXPECT_TRUE(contains(only_warning(), "KILN_CACHEDIR; did you mean KILN_CACHE_DIR?")) << only_warning();
}

TEST_F(ConfigTest, UnknownProgramSettingWarns) {
  SessionOptions options;
  options.settings["cache.folder_of_mine"] = "/a";
  load(options);
  EXPECT_TRUE(contains(only_warning(), "the program: unknown setting cache.folder_of_mine; remove it"));
}

TEST_F(ConfigTest, InvalidValueWarnsAndWeakerValueStays) {
  write_user_file("cache.max_size = \"7M\"\n");
  setenv("KILN_CACHE_MAX_SIZE", "lots", 1);
  const Config config = load();
  EXPECT_EQ(config.cache_max_bytes, 7ull << 20);
  EXPECT_EQ(setting(config, "cache.max_size").value, "7M");
  const std::string warning = only_warning();
  EXPECT_TRUE(contains(warning, "KILN_CACHE_MAX_SIZE")) << warning;
  EXPECT_TRUE(contains(warning, "'lots'")) << warning;
}

TEST_F(ConfigTest, PasswordOfUrlIsNotShown) {
  setenv("KILN_REMOTE", "https://user:secret@cache.example", 1);
  EXPECT_EQ(setting(load(), "remote.url").value, "https://***@cache.example");
  setenv("KILN_REMOTE", "htps://user:secret@cache.example", 1);
  (void)load();
  const std::string warning = only_warning();
  EXPECT_TRUE(contains(warning, "'htps://***@cache.example'")) << warning;
  EXPECT_TRUE(contains(warning, "s3://")) << warning;
}

TEST_F(ConfigTest, InvalidValuesOfEveryKindAreRejected) {
  const std::pair<const char*, const char*> bad[] = {
      {"KILN_CACHE_MAX_SIZE", "0"},
      {"KILN_CACHE_MAX_SIZE", "5X"},
      {"KILN_CACHE_MAX_SIZE", "99999999999T"},
      {"KILN_CACHE_MAX_SIZE", "-1"},
      {"KILN_COMPILE", "sometimes"},
      {"KILN_DISABLE", "maybe"},
      {"KILN_CACHE_TRUSTED_USERS", "12,bob"},
      {"KILN_JOBS", "many"},
      {"KILN_JOBS", "-1"},
      {"KILN_JOBS", "4097"},
      {"KILN_JOBS", "2x"},
      {"KILN_WORKER_MEMORY", "0"},
      {"KILN_WORKER_TIME_LIMIT", "0"},
      {"KILN_WORKER_TIME_LIMIT", "86401"},
      {"KILN_WORKER_TIME_LIMIT", "10m"},
      {"KILN_PCH", "perhaps"},
      {"KILN_PCH_MAX_SIZE", "2GG"},
      {"KILN_DIGEST", "never"},
      {"KILN_REMOTE", "ftp://host"},
      {"KILN_REMOTE", "relative"},
      {"KILN_REMOTE_BUDGET", "60001"},
      {"KILN_REMOTE_NAMESPACE", "Acme"},
      {"KILN_REMOTE_EPOCH", "4294967296"},
      {"KILN_LEASE", "https://host"},
      {"KILN_LEASE_TTL", "601"},
      {"KILN_STATUS_DIR", "office"},
  };
  for (const auto& [variable, value] : bad) {
    setenv(variable, value, 1);
    load();
    EXPECT_TRUE(contains(only_warning(), value)) << variable << "=" << value;
    EXPECT_TRUE(contains(only_warning(), "; use ")) << "the message must name valid values: " << only_warning();
    unsetenv(variable);
  }
}

TEST_F(ConfigTest, SizesAcceptSuffixes) {
  EXPECT_EQ(parse_size("1048576").value(), 1048576u);
  EXPECT_EQ(parse_size("512M").value(), 512ull << 20);
  EXPECT_EQ(parse_size("512MiB").value(), 512ull << 20);
  EXPECT_EQ(parse_size("2TB").value(), 2ull << 40);
  EXPECT_FALSE(parse_size("").has_value());
  EXPECT_FALSE(parse_size("G").has_value());
}

TEST_F(ConfigTest, EmptyVariableCountsAsUnset) {
  setenv("KILN_CACHE_DIR", "", 1);
  setenv("KILN_DISABLE", "", 1);
  setenv("KILN_CONFIG", "", 1);
  EXPECT_EQ(setting(load(), "cache.dir").origin, "default");
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(ConfigTest, FileWritableByOthersIsIgnored) {
  const std::string path = write_user_file("worker.path = \"/evil\"\n");
  chmod(path.c_str(), 0666);
  EXPECT_EQ(load().worker_path, "");
  EXPECT_TRUE(contains(only_warning(), "other users can write to " + path)) << only_warning();
}

TEST_F(ConfigTest, FifoOrDirectoryIsIgnoredWithoutHanging) {
  fs::create_directories(root_ / "etc");
  ASSERT_EQ(mkfifo((root_ / "etc/config.toml").c_str(), 0600), 0);
  load();
  EXPECT_TRUE(contains(only_warning(), "not a regular file"));
  fs::remove(root_ / "etc/config.toml");
  fs::create_directories(root_ / "etc/config.toml");
  load();
  EXPECT_TRUE(contains(only_warning(), "not a regular file"));
}

TEST_F(ConfigTest, UnparsableFileIsIgnoredAndLineReported) {
  const std::string path = write_user_file("disable = true\nthis is not toml\n");
  EXPECT_FALSE(load().disable);
  EXPECT_TRUE(contains(only_warning(), path + " is ignored: line 2")) << only_warning();
}

TEST_F(ConfigTest, MissingConfigFileWarns) {
  setenv("KILN_CONFIG", (root_ / "nowhere.toml").c_str(), 1);
  load();
  EXPECT_TRUE(contains(only_warning(), "nowhere.toml"));
}

TEST_F(ConfigTest, RelativePathIsRejectedInFileAndResolvedInVariable) {
  write_user_file("cache.dir = \"here\"\n");
  EXPECT_EQ(setting(load(), "cache.dir").origin, "default");
  EXPECT_TRUE(contains(only_warning(), "not an absolute path"));
  setenv("KILN_CACHE_DIR", "here", 1);
  EXPECT_EQ(load().cache_path.front(), (fs::current_path() / "here").string());
}

TEST_F(ConfigTest, CacheIsInPrivateDirectoryWithoutHome) {
  unsetenv("HOME");
  setenv("XDG_RUNTIME_DIR", root_.c_str(), 1);
  EXPECT_EQ(load().cache_path, std::vector<std::string>{(root_ / "kiln/cache").string()});
}

TEST_F(ConfigTest, XdgDirectoriesPrecedeHomeAndRelativeOnesAreIgnored) {
  write("xdg/kiln/config.toml", "disable = true\n");
  setenv("XDG_CONFIG_HOME", (root_ / "xdg").c_str(), 1);
  setenv("XDG_CACHE_HOME", "/xdg-cache", 1);
  const Config config = load();
  EXPECT_TRUE(config.disable);
  EXPECT_EQ(config.cache_path.front(), "/xdg-cache/kiln");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(load().cache_path.front(), (root_ / "home/.cache/kiln").string());
}

TEST_F(ConfigTest, ListForSingleValueWarns) {
  write_user_file("compile = [\"never\", \"allowed\"]\n");
  EXPECT_TRUE(load().may_compile);
  EXPECT_TRUE(contains(only_warning(), "takes one value"));
}

TEST(ParseConfig, FlattensTablesToDottedNames) {
  const auto settings = parse_config("a = 1\n[b]\nc = true\n[b.d]\ne = ['x', 'y']\n").value();
  ASSERT_EQ(settings.size(), 3u);
  EXPECT_EQ(settings[0].name, "a");
  EXPECT_EQ(settings[1].name, "b.c");
  EXPECT_EQ(settings[1].values, std::vector<std::string>{"true"});
  EXPECT_EQ(settings[2].name, "b.d.e");
  EXPECT_EQ(settings[2].values, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(settings[2].line, 5u);
}

TEST(ParseConfig, RejectsInvalidTomlWithoutAborting) {
  for (const char* text : {"[!b]", "[", "schl\xc3\xbcssel = 1", "a = \x01", "a = [[[[", "\xff\xfe", "a.b.c.=1"}) {
    const auto settings = parse_config(text);
    ASSERT_FALSE(settings.has_value()) << text;
    EXPECT_NE(settings.error().message.find("line 1"), std::string::npos) << settings.error().message;
  }
}

}  // namespace
}  // namespace kiln
