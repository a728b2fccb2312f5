#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "compile/compiler.hpp"

namespace kiln::test {

/// A compiler of no language, to make faults and count calls: its artifact is the unit's source and, where the source
/// is `include NAME`, the content of that file in the first include folder, which its closure then has.
class FakeCompiler final : public Compiler {
 public:
  std::string kind() const override { return "fake"; }
  Result<CompilerIdentity> identity() override {
    CompilerIdentity identity;
    identity.name = "fake";
    identity.version = version;
    identity.digest = sha256(version);
    return identity;
  }
  Status supports(const Target& /*target*/) override { return {}; }
  bool closed(const Recipe& recipe) const override { return !recipe.unit.source().starts_with("include "); }

  Result<Compiled> compile(const Recipe& recipe) override {
    ++compiles;
    std::this_thread::sleep_for(takes);
    if (fails) return failure(Code::CompileFailed, "it does not compile", "line 1: no");
    Compiled compiled;
    compiled.not_cacheable = not_cacheable;
    Closure closure;
    std::string text = recipe.unit.source();
    if (!closed(recipe)) {
      const std::string name = text.substr(8);
      const auto content = read_file(recipe.places().path_of(0, name));
      if (!content || !*content) return failure(Code::CompileFailed, "no " + name);
      text = (*content)->view();
      if (!looks_for_first.empty()) closure.items.push_back({0, Closure::State::Absent, looks_for_first, {}, 0});
      closure.items.push_back({0, Closure::State::Read, name, sha256(text), 0});
    }
    compiled.artifact.bytes = Bytes::of("compiled " + text);
    compiled.artifact.target = recipe.target;
    compiled.artifact.closure = std::make_shared<const Closure>(std::move(closure));
    compiled.artifact.about = {recipe.unit.name(), "fake " + version, 10, ""};
    return compiled;
  }

  std::string version = "1";
  std::string not_cacheable;
  std::string looks_for_first;  ///< a name that it says not to have found
  bool fails = false;
  std::chrono::milliseconds takes{0};
  std::atomic<int> compiles{0};
};

}  // namespace kiln::test
