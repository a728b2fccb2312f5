#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/key.hpp>
#include <kiln/target.hpp>
#include <kiln/unit.hpp>

#include "core/closure.hpp"

namespace kiln {

/// Which compiler: by the content of its files, so that two builds of one version are two compilers.
struct CompilerIdentity {
  std::string name;     ///< nvrtc, opencl, …
  std::string version;  ///< for people
  std::string path;     ///< for people: where it was found
  Digest digest{};      ///< what counts
  /// Inputs from outside the call, such as NVRTC_APPEND_FLAGS: name and value, sorted by name.
  std::vector<std::pair<std::string, std::string>> environment;
  /// Another compiler's part of it is joined to ours.
  void add_environment(const std::vector<std::pair<std::string, std::string>>& more);
  /// What else it opens, by path, in an order that the compiler knows. Their content is in the digest.
  std::vector<std::string> libraries;
  /// Folders of headers that belong to the compiler and not to the unit. They come after the unit's own.
  std::vector<IncludeRoot> roots;
};

/// All that decides a compile before it runs. A value.
struct Recipe {
  Unit unit;
  Target target;
  CompilerIdentity compiler;
  std::string working_directory;  ///< absolute: compilers open `./x.h` before any include folder
  bool closed = false;            ///< `Compiler::closed` said so; not part of any key

  // Who wants it, and how much: part of no key, and not sent to workers.
  std::uint64_t flow = 0;  ///< which order of this process it came from, for events
  std::stop_token stop;    ///< whether it is still wanted: a compile that can be ended is, when it is not
  bool urgent = false;     ///< somebody waits for it
  std::size_t company =
      0;  ///< how many more of its kind, for the same target, wait behind it, as far as anyone counted

  RequestKey request_key() const;
  Places places() const;
};

/// The number in an architecture: 90 of sm_90, of sm_90a too where `variants` are taken; nothing where it is no GPU's.
std::optional<int> capability_of(const Target& target, bool variants = false);

/// The target that a unit's compiler makes something for when `target` is a device's: the same, except that a unit of
/// kind "cccl" gives no bare machine code.
Target fitted(const Unit& unit, Target target);

/// The name of the artifact that a recipe gives when its compile reads this closure.
Key key_of(const RequestKey& request, const Closure& closure);

/// The forms in which recipes and artifacts travel to and from a worker. The artifact's bytes are not in it.
std::string encode(const Recipe& recipe);
Result<Recipe> decode_recipe(std::string_view bytes);

/// What is known of an artifact besides its bytes; the closure travels apart.
std::string encode_metadata(const Artifact& artifact);
Result<Artifact> decode_metadata(std::string_view bytes);

}  // namespace kiln
