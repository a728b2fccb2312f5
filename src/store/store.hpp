#pragma once

#include <optional>
#include <string>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/result.hpp>

#include "core/closure.hpp"

namespace kiln {

/// An artifact that a store had. Its `closure` is not set: whoever asked knew it, the key covers it.
struct Hit {
  Artifact artifact;
  Origin origin = Origin::Memory;
};

/// Keeps artifacts under their keys, and per request the closures that were seen.
/// Every implementation and decorator passes tests/conformance/store_conformance.hpp. Any thread may call any function.
///
/// A store never serves bytes other than those that were put: damage is absence (or an error), and is repaired.
class Store {
 public:
  /// How many closures a store keeps per request.
  static constexpr std::size_t kMostClosures = 16;

  virtual ~Store() = default;

  /// The artifact, nothing, or an error where the store itself failed. A miss is not an error.
  virtual Result<std::optional<Hit>> get(const Key& key) = 0;
  /// As `get`, for somebody to whom these bytes are of no use: what a store has besides them under that key.
  virtual Result<std::optional<Hit>> get_instead(const Key& key, const Bytes& refused);
  /// Stores it; an entry that is there already may stay as it is, since equal keys mean equivalent artifacts.
  virtual Status put(const Key& key, const Artifact& artifact) = 0;

  /// The closures seen for a request, newest first, at most `limit`. They are hints: the reader checks the files and
  /// computes the key himself, so a lost, stale or forged one costs a compile and nothing else. The newest is nearly
  /// always the right one, and a large closure costs more to decode than an artifact to read: ask for one first.
  virtual Result<std::vector<Closure>> closures(const RequestKey& request, std::size_t limit = kMostClosures) = 0;
  /// Puts a closure first among those of a request.
  virtual Status add_closure(const RequestKey& request, const Closure& closure) = 0;

  /// Whether it makes sense to put: false for a bundle, an image's cache, a mirror. A put there is refused.
  virtual bool writable() { return true; }

  /// For people: "disk /home/a/.cache/kiln".
  virtual std::string describe() const = 0;
};

inline Result<std::optional<Hit>> Store::get_instead(const Key& key, const Bytes& refused) {
  auto hit = get(key);
  if (hit && *hit && (*hit)->artifact.bytes == refused) return std::optional<Hit>();
  return hit;
}

}  // namespace kiln
