// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <kiln/session.hpp>

#include "apps/kiln/jit/fill.hpp"
#include "apps/kiln/jit/publish.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {

/// A fixture with a made-up system whose entries are folders of four hexadecimal digits with a file `done`.
class JitFixture : public testing::Test {
 protected:
  using Filled = jit::FillOutcome::State;
  using Published = jit::PublishOutcome::State;

  static constexpr const char* kRules =
      "[[rule]]\nsystem = \"toy\"\nversions = \">=1\"\ndistributions = [\"toy\"]\nvariable = \"TOY_CACHE\"\n"
      "root = \"~/.toy\"\nentries = [\"[0-9a-f]{4}\"]\nwhole = [\"done\"]\nnever = [\"*.lock\"]\n"
      "rewrite = [\"paths.json\"]\nevidence = \"run\"\n"
      "[[rule]]\nsystem = \"single\"\nversions = \">=1\"\ndistributions = [\"toy\"]\nroot = \"~/.single\"\n"
      "kind = \"file\"\nentries = [\"k/*.bin\"]\nevidence = \"run\"\n";

  void SetUp() override {
    auto rules = jit::parse_rules(kRules, "toy.toml");
    ASSERT_TRUE(rules) << rules.error().message;
    rules_ = std::move(*rules);
  }

  /// Opens a session with its own cache; `more` are further settings.
  static Session session(const std::string& cache, std::map<std::string, std::string> more = {}) {
    SessionOptions options;
    options.settings = std::move(more);
    options.settings["cache.dir"] = cache;
    for (const auto& [name, value] : options.settings) options.locked.insert(name);
    auto opened = Session::open(std::move(options));
    EXPECT_TRUE(opened);
    return std::move(*opened);
  }
  jit::DetectedSystem system(const std::string& name = "toy", const std::string& version = "1.0") const {
    for (const jit::Rule& rule : rules_) {
      if (rule.system != name) continue;
      jit::PythonEnvironment python;
      python.versions["toy"] = version;
      return {&rule, name, version, jit::environment_text(rule, python)};
    }
    ADD_FAILURE() << "no rule of " << name;
    return {};
  }
  /// Writes an entry of `toy` with files of this text.
  void write_entry(const std::string& root, const std::string& entry, const std::string& text = "x") const {
    make_root(root);
    std::filesystem::create_directories(root + "/" + entry + "/sub");
    write_text(root + "/" + entry + "/kernel.bin", text);
    write_text(root + "/" + entry + "/sub/more.bin", "more " + text);
    write_text(root + "/" + entry + "/done", "");
  }
  /// Creates a directory of mode 0700.
  static void make_root(const std::string& root) {
    std::filesystem::create_directories(root);
    ASSERT_EQ(chmod(root.c_str(), 0700), 0);
  }
  static jit::PublishReport publish(Session& session, const jit::DetectedSystem& system, const std::string& root,
                                    const std::string& profile = "default") {
    return jit::publish(jit::JitTiers(session, profile), system, root, {}, Deadline(std::chrono::seconds(60)));
  }
  static jit::FillReport fill(Session& session, const jit::DetectedSystem& system, const std::string& root,
                              const jit::Limits& limits = {}, const std::string& profile = "default") {
    return jit::fill(jit::JitTiers(session, profile), system, root, limits, Deadline(std::chrono::seconds(60)));
  }
  /// Returns the number of entries and files below a directory; 0 if it does not exist.
  static std::size_t count_below(const std::string& root) {
    std::size_t count = 0;
    std::error_code ignored;
    for ([[maybe_unused]] const auto& each : std::filesystem::recursive_directory_iterator(root, ignored)) ++count;
    return count;
  }

  TemporaryDirectory room_;
  std::vector<jit::Rule> rules_;
};

}  // namespace kiln::test
