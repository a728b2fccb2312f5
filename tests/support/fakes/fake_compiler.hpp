// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "backends/compiler.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/hash.hpp"

namespace kiln::test {

/// A fake compiler that can fail and counts calls. Its artifact is the unit's source. If the source is `include NAME`,
/// the content of that file in the first include directory is added, and its dependency set has the file.
class FakeCompiler final : public Compiler {
 public:
  std::string kind() const override { return "fake"; }
  Result<CompilerIdentity> identity(const RequestContext& /*context*/) override {
    CompilerIdentity identity;
    identity.name = "fake";
    identity.version = version;
    identity.digest = sha256(version);
    return identity;
  }
  Status supports(const Target& /*target*/) override { return {}; }
  bool is_self_contained(const Recipe& recipe) const override { return !recipe.unit.source().starts_with("include "); }

  Result<CompileResult> compile(const Recipe& recipe, const RequestContext& /*context*/) override {
    ++compiles;
    std::this_thread::sleep_for(takes);
    if (fails) return make_error(Code::CompileFailed, "it does not compile", "line 1: no");
    CompileResult compiled;
    compiled.uncacheable_reason = uncacheable_reason;
    DependencySet dependency_set;
    std::string text = recipe.unit.source();
    if (!is_self_contained(recipe)) {
      const std::string name = text.substr(8);
      const auto content = read_file(recipe.path_roots().path_of(0, name));
      if (!content || !*content) return make_error(Code::CompileFailed, "no " + name);
      text = (*content)->view();
      if (!looks_for_first.empty())
        dependency_set.items.push_back({0, DependencySet::State::Absent, looks_for_first, {}, 0});
      dependency_set.embeds_mtimes = embeds_mtimes;
      DependencySet::Dependency header{0, DependencySet::State::Read, name, sha256(text), 0};
      if (embeds_mtimes) {
        const auto stamp = stamp_of(recipe.path_roots().path_of(0, name).c_str());
        header.modified_s = stamp.value_or(FileStamp{}).modified_ns / 1'000'000'000;
      }
      dependency_set.items.push_back(std::move(header));
    }
    compiled.artifact.bytes = Bytes::of("compiled " + text);
    compiled.artifact.target = recipe.target;
    compiled.artifact.dependency_set = std::make_shared<const DependencySet>(std::move(dependency_set));
    compiled.artifact.metadata = {recipe.unit.name(), "fake " + version, 10, ""};
    return compiled;
  }

  std::string version = "1";
  std::string uncacheable_reason;
  std::string looks_for_first;  ///< a name that it reports as missing
  bool embeds_mtimes = false;   ///< its output contains the modification times of the files
  bool fails = false;
  std::chrono::milliseconds takes{0};
  std::atomic<int> compiles{0};
};

}  // namespace kiln::test
