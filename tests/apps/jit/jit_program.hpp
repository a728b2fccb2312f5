// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "apps/run_kiln.hpp"
#include "support/fixtures/files.hpp"

namespace kiln::test {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

/// A fixture that runs `kiln jit` and `kiln run` with a made-up system whose entries are plain files.
class JitProgram : public KilnProgram {
 protected:
  void SetUp() override {
    KilnProgram::SetUp();
    write_rule("");
    fs::create_directories(path("venv/lib/python3.11/site-packages/toy-1.0.dist-info"));
    fs::create_directories(path("home"));
  }
  void write_rule(const std::string& more) {
    write("rules/toy.toml",
          "[[rule]]\nsystem = \"toy\"\nversions = \">=1, <2\"\ndistributions = [\"toy\"]\nvariable = \"TOY_CACHE\"\n"
          "root = \"~/.toy\"\nentries = [\"[0-9a-f]{4}\"]\nwhole = [\"done\"]\nevidence = \"run\"\n" +
              more);
  }
  void write_entry(const std::string& root, const std::string& entry) {
    write(root + "/" + entry + "/kernel.bin", entry);
    write(root + "/" + entry + "/done", "done");
    ASSERT_EQ(chmod(path(root).c_str(), 0700), 0);
  }
  // Returns whether every entry of a root is complete, and counts them.
  std::size_t complete_entries(const std::string& root) {
    std::size_t count = 0;
    std::error_code ignored;
    for (const auto& each : fs::directory_iterator(path(root), ignored)) {
      const std::string name = each.path().filename().string();
      if (name.starts_with(".kiln-")) continue;
      EXPECT_EQ(read_text(each.path().string() + "/kernel.bin"), name);
      EXPECT_EQ(read_text(each.path().string() + "/done"), "done");
      ++count;
    }
    return count;
  }
  Variables with(Variables more = {}) const {
    more.emplace("VIRTUAL_ENV", path("venv"));
    return more;
  }
  Ran jit(Strings arguments, const Variables& more = {}) {
    arguments.insert(arguments.begin(), "jit");
    arguments.insert(arguments.end(), {"--rules", path("rules"), "--json"});
    return run(arguments, with(more));
  }
  static int count(const Ran& ran, const char* state) {
    const auto json = ran.json();
    if (!json.is_object() || json["systems"].empty()) return 0;
    return json["systems"][0]["counts"][state];
  }
  Ran run_with(const std::string& script, const Variables& more = {}, Strings options = {}) {
    Strings arguments = {"run", "--rules", path("rules")};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--", "/bin/sh", "-c", script});
    return run(arguments, with(more));
  }
  std::string new_key(const std::string& file) {
    const Ran ran = run({"key", "generate", "-o", file, "--json"});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return ran.json()["public"];
  }
  void trust(const std::string& key, const std::string& pattern, const std::string& more = {}) {
    write("policy.toml", "[[key]]\npublic = \"" + key + "\"\nnamespaces = [\"" + pattern + "\"]\n" + more);
  }
  // Publishes two entries and signs a bundle of them.
  void make_bundle(const std::string& key) {
    write_entry("from", "00aa");
    write_entry("from", "00bb");
    const Ran published = jit({"publish", "--root", "toy=from"}, {{"KILN_CACHE_DIR", path("publisher")}});
    ASSERT_EQ(count(published, "published"), 2) << published.out << published.err;
    const Ran bundle = run({"bundle", "create", "--external", "jit.toy", "-o", "toy.kiln", "--key", key, "--namespace",
                            "acme/vision", "--epoch", "1"},
                           {{"KILN_CACHE_DIR", path("publisher")}});
    ASSERT_EQ(bundle.exit_code, 0) << bundle.err;
  }
  Variables reader(Variables more = {}) const {
    more.emplace("HOME", path("other_home"));
    more.emplace("KILN_CACHE_DIR", path("other_cache"));
    return more;
  }
};

}  // namespace kiln::test
