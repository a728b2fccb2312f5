// SPDX-License-Identifier: Apache-2.0
#include "backends/toy/toy_compiler.hpp"

#include "backends/kernel_entries.hpp"
#include "backends/toy/toy_program.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"

namespace kiln::test {
namespace {

// Changes with every change of the output for the same source.
constexpr const char* kVersion = "1";

}  // namespace

Target toy_target() { return {"toy:stack machine", Form::OpenClBinary}; }

Result<CompilerIdentity> ToyCompiler::identity(const RequestContext& /*context*/) {
  CompilerIdentity identity;
  identity.name = kToyKind;
  identity.version = kVersion;
  identity.digest = sha256(std::string("kiln toy compiler ") + kVersion);
  return identity;
}

Status ToyCompiler::supports(const Target& target) {
  if (target == toy_target()) return {};
  return make_error(Code::Unsupported,
                    "the toy compiler does not support " + target.name() + "; it supports: " + toy_target().name());
}

Result<CompileResult> ToyCompiler::compile(const Recipe& recipe, const RequestContext& /*context*/) {
  const Unit& unit = recipe.unit;
  if (unit.kind() != kToyKind) {
    return make_error(Code::InvalidArgument, unit.name() + " is a unit of kind " + unit.kind() + ", not toy");
  }
  if (Status supported = supports(recipe.target); !supported) return std::move(supported).error();
  const auto start = system_clock().steady();
  const auto program = parse_toy(unit.full_source());
  if (!program) return program.error();
  std::vector<std::string> names;
  for (const ToyKernelCode& kernel : *program) names.push_back(kernel.name);
  auto entries = entries_by_symbol(unit, names, "");
  if (!entries) return std::move(entries).error();

  CompileResult compiled;
  Artifact& artifact = compiled.artifact;
  artifact.bytes = Bytes::of(encode_toy(*program));
  artifact.target = recipe.target;
  artifact.entries = std::move(*entries);
  artifact.dependency_set = std::make_shared<const DependencySet>();
  artifact.metadata = {unit.name(), std::string(kToyKind) + " " + kVersion, milliseconds_since(system_clock(), start),
                       ""};
  return compiled;
}

}  // namespace kiln::test
