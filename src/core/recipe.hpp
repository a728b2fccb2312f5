// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/key.hpp>
#include <kiln/target.hpp>
#include <kiln/unit.hpp>

#include "core/dependency_set.hpp"

namespace kiln {

/// The identity of a compiler, by the content of its files: two builds of one version are two compilers.
struct CompilerIdentity {
  std::string name;     ///< nvrtc, opencl, …
  std::string version;  ///< human-readable
  std::string path;     ///< human-readable: the location of the compiler
  Digest digest{};      ///< the part that counts as identity
  /// Inputs from outside the call, such as NVRTC_APPEND_FLAGS: name and value, sorted by name.
  std::vector<std::pair<std::string, std::string>> environment;
  /// Merges the environment of another compiler into this one.
  void add_environment(const std::vector<std::pair<std::string, std::string>>& more);
  /// Paths of additional files that the compiler opens, in an order defined by the compiler. The digest covers their
  /// content.
  std::vector<std::string> libraries;
  /// Include directories that belong to the compiler. They follow those of the unit.
  std::vector<IncludeRoot> roots;
};

/// All inputs of a compile that are known before it runs. A value type.
struct Recipe {
  Unit unit;
  Target target;
  CompilerIdentity compiler;
  std::string working_directory;  ///< absolute; compilers open `./x.h` before any include directory
  bool self_contained = false;    ///< result of `Compiler::is_self_contained`; not part of any key

  RequestKey request_key() const;
  PathRoots path_roots() const;
};

/// Returns the number of an architecture: 90 for sm_90, and for sm_90a if `variants` is set. Returns nothing if it is
/// not a GPU architecture.
std::optional<int> capability_of(const Target& target, bool variants = false);

/// Returns the target that a unit's compiler builds for when `target` is a device's. It is the same target, except that
/// a unit of kind "cccl" has no plain machine code.
Target effective_target(const Unit& unit, Target target);

/// Returns the key of the artifact that a recipe produces if its compile reads this dependency set.
ArtifactKey artifact_key(const RequestKey& request, const DependencySet& dependency_set);

/// The encodings of recipes for the worker protocol. The bytes of the artifact are not included.
std::string encode(const Recipe& recipe);
Result<Recipe> decode_recipe(std::string_view bytes);

/// The encoding of an artifact's metadata; the dependency set is sent separately.
std::string encode_metadata(const Artifact& artifact);
Result<Artifact> decode_metadata(std::string_view bytes);

}  // namespace kiln
