#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/file_digests.hpp"
#include "compile/compiler.hpp"
#include "compile/refusals.hpp"
#include "core/link_parts.hpp"

namespace kiln {

/// Links what another compiler links, and takes units as parts besides: each is got as LTO-IR for the link's
/// architecture, and the closure of the whole is that of its parts, one after the other. Any thread.
class PartsCompiler final : public Compiler {
 public:
  /// Gives the artifact of a part, from wherever it is kept, and says like a compiler whether it may be kept. It is
  /// called on the thread that compiles the whole. The recipe has the flow and the working directory of the whole.
  using Get = std::function<Result<Compiled>(const Recipe& part)>;

  /// `inner` links bytes; `parts` compiles the units, and must outlive this, as `digests` must. Where `get` does not
  /// ask it in the end, it must ask one of the same identity.
  PartsCompiler(std::unique_ptr<Compiler> inner, Compiler& parts, Get get, FileDigests& digests);

  std::string kind() const override { return inner_->kind(); }
  /// Both compilers' as one. Without a compiler of units, the linker's: bytes can still be linked.
  Result<CompilerIdentity> identity() override;
  Status supports(const Target& target) override { return inner_->supports(target); }
  bool closed(const Recipe& recipe) const override;
  Result<Compiled> compile(const Recipe& recipe) override;
  bool worth_another_try(const Recipe& recipe) override;
  /// Ends the linker's processes. Those of the parts' compiler are for whoever owns it.
  void interrupt() override { inner_->interrupt(); }

 private:
  struct Gathered;

  Status gather(const Recipe& recipe, const std::vector<LinkPartView>& parts, Gathered& all);
  Result<Compiled> link(const Recipe& recipe, Gathered& all);

  const std::unique_ptr<Compiler> inner_;
  Compiler& parts_;
  const Get get_;
  Refusals refusals_;
};

/// Adds what a part read to what the whole read. The part's include roots are those of the whole from `first_root` on.
void add_closure(Closure& whole, const Closure& part, std::size_t first_root);

}  // namespace kiln
