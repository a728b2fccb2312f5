// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/compiler.hpp"
#include "backends/failure_cache.hpp"
#include "base/files/file_digest_cache.hpp"
#include "core/link_parts.hpp"

namespace kiln {

/// A linker that accepts units as parts in addition to the parts that `inner` links. Each unit is compiled to LTO-IR
/// for the link's architecture. The dependency set of the result is the concatenation of those of its parts.
/// Thread-safe.
class LinkCompiler final : public Compiler {
 public:
  /// Returns the artifact of a part, from a cache or a compile, and reports like a compiler whether it can be cached.
  /// It is called on the thread that compiles the whole link, with the context of the link. The recipe has the working
  /// directory of the link.
  using Get = std::function<Result<CompileResult>(const Recipe& part, const RequestContext& context)>;

  /// `inner` links bytes; `parts` compiles the units. `parts` and `digests` must outlive this object. If `get` does not
  /// use `parts`, it must use a compiler of the same identity.
  LinkCompiler(std::unique_ptr<Compiler> inner, Compiler& parts, Get get, FileDigestCache& digests);

  std::string kind() const override { return inner_->kind(); }
  /// Returns the combined identity of both compilers. Without a compiler of units it is the linker's: bytes can still
  /// be linked.
  Result<CompilerIdentity> identity(const RequestContext& context) override;
  Status supports(const Target& target) override { return inner_->supports(target); }
  bool is_self_contained(const Recipe& recipe) const override;
  Result<CompileResult> compile(const Recipe& recipe, const RequestContext& context) override;
  bool should_retry(const Recipe& recipe) override;
  /// Terminates the linker's processes. The owner of the parts' compiler terminates that compiler's processes.
  void interrupt() override { inner_->interrupt(); }

 private:
  struct LinkInputs;

  Status collect_inputs(const Recipe& recipe, const std::vector<LinkPartView>& parts, LinkInputs& all,
                        const RequestContext& context);
  Result<CompileResult> link(const Recipe& recipe, LinkInputs& all, const RequestContext& context);

  const std::unique_ptr<Compiler> inner_;
  Compiler& parts_;
  const Get get_;  // the resolver, which is in a higher layer
  FailureCache failures_;
};

/// The include roots of a part in the whole: `count` roots of its unit start at `first`. The roots of the compiler,
/// which follow those of a unit, start at `compiler`.
struct PartRoots {
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t compiler = 0;
};
/// Adds the dependencies of a part to those of the whole.
void add_dependency_set(DependencySet& whole, const DependencySet& part, const PartRoots& roots);

}  // namespace kiln
