// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/bytes.hpp>
#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "base/clock.hpp"

namespace kiln {

/// An object store with two buckets, on a server or in a shared directory. Any client can write objects; this interface
/// neither verifies nor parses them. Every implementation passes tests/conformance/object_store_conformance.hpp and
/// opens nothing before the first call. Thread-safe.
///
/// Errors: Code::TimedOut; Code::Unavailable if the store cannot be reached or reports a failure; Code::Denied if the
/// store denies access; Code::Corrupt for a response that is too long, truncated or malformed; Code::Unsupported for an
/// operation that the store does not have; Code::Cancelled if no request was sent or the deadline was interrupted,
/// which says nothing about the store. No message contains a credential.
class ObjectStore {
 public:
  enum class Bucket : unsigned char {
    ActionCache,  ///< `ac/<digest>`: the digest of a request
    Cas,          ///< `cas/<digest>`: the SHA-256 digest of the object
  };
  using Time = std::chrono::nanoseconds;

  virtual ~ObjectStore() = default;

  /// Reads an object. Returns nothing if it is missing. Accepts at most `maximum` bytes and ends at the deadline,
  /// regardless of the server's behavior.
  virtual Result<std::optional<Bytes>> read(Bucket bucket, const Digest& name, std::uint64_t maximum,
                                            const Deadline& deadline) = 0;
  /// Writes an object, the concatenation of `parts`, and atomically replaces an existing one.
  virtual Status write(Bucket bucket, const Digest& name, std::initializer_list<std::string_view> parts,
                       const Deadline& deadline) = 0;
  /// Removes an object. A missing object is not an error.
  virtual Status remove(Bucket bucket, const Digest& name, const Deadline& deadline) = 0;

  struct ObjectInfo {
    Digest name;
    std::uint64_t bytes = 0;
    std::chrono::nanoseconds modified{};  ///< wall time, by the clock of the object store
  };
  /// Lists all objects of a bucket, for diagnostics and maintenance. Many servers return Code::Unsupported.
  virtual Result<std::vector<ObjectInfo>> list(Bucket bucket, const Deadline& deadline) = 0;

  /// Removes files that dead writers left behind, for maintenance. Does nothing if writers cannot leave any.
  virtual Status remove_stale_uploads(const Deadline& /*deadline*/) { return {}; }
  /// Checks whether the object store responds.
  virtual Status probe(const Deadline& deadline) = 0;
  /// Returns whether the object store knows a bucket, for diagnostics. A server that does not may create it at the
  /// first write, or the path of its URL is wrong.
  virtual Result<bool> has_bucket(Bucket /*bucket*/, const Deadline& /*deadline*/) { return true; }
  /// Returns a human-readable name without credentials, for example "https://cache.example/kiln".
  virtual std::string describe() const = 0;
};

/// Returns "ac" or "cas".
inline const char* to_string(ObjectStore::Bucket bucket) {
  return bucket == ObjectStore::Bucket::ActionCache ? "ac" : "cas";
}

}  // namespace kiln
