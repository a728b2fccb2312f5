// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "backends/compiler.hpp"

namespace kiln::test {

/// The kind of the toy backend's units.
inline constexpr const char* kToyKind = "toy";
/// The target of its only device.
Target toy_target();

/// A compiler of the toy language (toy_program.hpp). It reads no files, so that the unit determines its result.
/// Thread-safe: it has no state.
class ToyCompiler final : public Compiler {
 public:
  std::string kind() const override { return kToyKind; }
  Result<CompilerIdentity> identity(const RequestContext& context) override;
  Status supports(const Target& target) override;
  bool is_self_contained(const Recipe& /*recipe*/) const override { return true; }
  Result<CompileResult> compile(const Recipe& recipe, const RequestContext& context) override;
};

}  // namespace kiln::test
