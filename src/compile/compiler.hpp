#pragma once

#include <string>

#include <kiln/result.hpp>

#include "core/recipe.hpp"

namespace kiln {

/// What a compile gave.
struct Compiled {
  Artifact artifact;
  /// Empty when the artifact may be stored under its key; else why it may not (its inputs are not all known, or they
  /// changed while the compiler ran). The caller has its artifact either way.
  std::string not_cacheable;
};

/// A compiler of units. Every implementation and decorator passes tests/conformance/compiler_conformance.hpp.
/// Any thread may call any function.
class Compiler {
 public:
  virtual ~Compiler() = default;

  /// Which kind of unit it compiles: "cuda", "opencl", ….
  virtual std::string kind() const = 0;

  /// Which compiler this is, told without opening its library where the toolchain allows that, because a hit asks too.
  virtual Result<CompilerIdentity> identity() = 0;

  /// Whether it can compile for this target; an error that says what it can do where it cannot. May open the library.
  virtual Status supports(const Target& target) = 0;

  /// Whether the recipe's own bytes decide the result: its compile can read no file, and neither paths nor times of
  /// files are in its output. Its closure is then known to be empty before it is compiled.
  virtual bool closed(const Recipe& /*recipe*/) const { return false; }

  /// Compiles, needing no device where the toolchain allows. The artifact has its closure where files could be read.
  /// A unit that the compiler refuses is Code::CompileFailed with the compiler's own log.
  virtual Result<Compiled> compile(const Recipe& recipe) = 0;

  /// Whether a recipe that it refused might come out otherwise now: something that the compile read has changed, or
  /// nobody knows what it read.
  virtual bool worth_another_try(const Recipe& recipe) { return !closed(recipe); }

  /// Ends what it runs in processes of its own, and begins no more: the program is ending. What runs in this process
  /// cannot be ended.
  virtual void interrupt() {}
};

}  // namespace kiln
