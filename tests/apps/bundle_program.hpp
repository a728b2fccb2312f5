// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "apps/run_kiln.hpp"

namespace kiln::test {

using Strings = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

inline const Variables kUnsigned = {{"KILN_TRUST_UNSIGNED", "1"}};

/// A fixture that runs kiln in a directory with a small project and creates bundles from it.
class BundleProgram : public KilnProgram {
 protected:
  void SetUp() override {
    KilnProgram::SetUp();
    write_project("");
  }

  /// Writes a project with two units, one of which includes a header, for one architecture.
  void write_project(const std::string& directory) {
    write(directory + "include/a.h", "#define A 1\n");
    write(directory + "a.cu", "#include <a.h>\nextern \"C\" __global__ void a(float* x) { x[threadIdx.x] += A; }\n");
    write(directory + "b.cu", "extern \"C\" __global__ void b(float* x) { x[threadIdx.x] *= 2; }\n");
    write(directory + "kiln.toml",
          "namespace = \"acme/vision\"\nepoch = 3\narchitectures = [\"sm_80\"]\n\n"
          "[[unit]]\nsource = \"a.cu\"\ninclude = [\"include\"]\nentries = [\"a\"]\n\n"
          "[[unit]]\nsource = \"b.cu\"\nentries = [\"b\"]\n");
  }

  Ran create(const std::string& output, Strings more = {}, const Variables& variables = {}) {
    more.insert(more.begin(), {"bundle", "create", "kiln.toml", "-o", output, "--json"});
    Ran ran = run(more, variables);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return ran;
  }

  /// Creates a signing key and returns its public key.
  std::string new_key(const std::string& file) {
    const Ran ran = run({"key", "generate", "-o", file, "--json"});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return ran.json()["public"];
  }
  std::string policy_for(const std::string& key, const std::string& pattern) {
    return write("policy.toml", "[[key]]\npublic = \"" + key + "\"\nnamespaces = [\"" + pattern + "\"]\n");
  }

  /// Returns a profile line for a unit of a bundle.
  std::string asked(const std::string& bundle, const std::string& unit, const std::string& target) {
    const auto artifacts = run({"bundle", "ls", bundle, "--json"}).json()["artifacts"];
    for (const auto& artifact : artifacts) {
      if (artifact["unit"] == unit) return line(unit, artifact["unit_key"], target, artifact["kind"]);
    }
    ADD_FAILURE() << bundle << " has no " << unit;
    return {};
  }
  static std::string line(const std::string& unit, const std::string& key, const std::string& target,
                          const std::string& kind = "cuda") {
    return R"({"kiln":"profile 1","unit":")" + unit + R"(","kind":")" + kind + R"(","key":")" + key +
           R"(","target":")" + target + "\"}\n";
  }
};

inline Strings built(const Ran& ran) {
  Strings all;
  const auto json = ran.json();
  for (const auto& result : json["results"]) {
    all.push_back(result["unit"].get<std::string>() + " " + result["target"].get<std::string>());
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace kiln::test
