// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <kiln/result.hpp>

#include "core/recipe.hpp"
#include "core/request_context.hpp"

namespace kiln {

/// The result of a compile.
struct CompileResult {
  Artifact artifact;
  /// Reason why the artifact must not be stored under its key: not all of its inputs are known, or they changed while
  /// the compiler ran. Empty if it can be stored. The caller gets the artifact in both cases.
  std::string uncacheable_reason;
};

/// A compile that was started before the identity of its compiler was known. `Compiler::compile` uses its result if the
/// context of the request has it. The destructor ends it.
class EarlyCompile {
 public:
  virtual ~EarlyCompile() = default;
};

/// A compiler of units. Every implementation and decorator passes tests/conformance/compiler_conformance.hpp.
/// Thread-safe.
class Compiler {
 public:
  virtual ~Compiler() = default;

  /// Returns the kind of unit that this compiler accepts: "cuda", "opencl", ….
  virtual std::string kind() const = 0;

  /// Returns the identity of this compiler. It does not open the compiler's library if the toolchain allows that,
  /// because every cache hit calls it too. A digest of its files that is not older than the request is reused.
  virtual Result<CompilerIdentity> identity(const RequestContext& context) = 0;

  /// Returns the identity without its digest if `identity` has to read large files first and `start_early` can compile
  /// in the meantime; otherwise nothing.
  virtual std::optional<CompilerIdentity> undigested_identity() { return std::nullopt; }
  /// Returns a digest of the identities, sizes and times of the compiler's files; nothing if an equal one later does
  /// not prove that the files did not change in between.
  virtual std::optional<Digest> files_state() { return std::nullopt; }
  /// Starts to compile a recipe that has an undigested identity. Returns null if that is not possible. Nothing is
  /// stored or reported before `compile` uses the result.
  virtual std::unique_ptr<EarlyCompile> start_early(const Recipe& /*undigested*/, const RequestContext& /*context*/) {
    return nullptr;
  }

  /// Checks whether the compiler supports this target. The error lists what it supports. Can open the library.
  virtual Status supports(const Target& target) = 0;

  /// Returns true if the bytes of the recipe alone determine the result: the compile reads no file, and the output
  /// contains neither paths nor times of files. The dependency set is then known to be empty before the compile.
  virtual bool is_self_contained(const Recipe& /*recipe*/) const { return false; }

  /// Compiles the recipe, without a device if the toolchain allows that. The artifact has its dependency set if the
  /// compile could read files. If the compiler rejects the unit, the error is Code::CompileFailed with the compiler's
  /// log.
  virtual Result<CompileResult> compile(const Recipe& recipe, const RequestContext& context) = 0;

  /// Returns the unit that must compile before this recipe does, because kiln does not know the compiler's library;
  /// nothing for a known library. The result is remembered (worker/library_check.hpp).
  virtual std::optional<Unit> check_before(const Recipe& /*recipe*/) { return std::nullopt; }

  /// Returns true if a recipe that failed to compile could compile now: a file that the compile read has changed, or
  /// its inputs are unknown.
  virtual bool should_retry(const Recipe& recipe) { return !is_self_contained(recipe); }

  /// Terminates the processes that this compiler runs and starts no more, because the program is ending. A compile
  /// inside this process cannot be terminated.
  virtual void interrupt() {}
};

}  // namespace kiln
