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

namespace kiln {

/// Where the bodies of a remote store lie: a server or a shared folder with two shelves. Its bodies are whatever was
/// written under a name, by anybody: nothing here is believed, checked or parsed.
/// Every implementation passes tests/conformance/depot_conformance.hpp. Any thread may call any function. Nothing is
/// opened before the first call.
///
/// Errors: Code::TimedOut; Code::Unavailable where it cannot be reached or says that it is in trouble; Code::Refused
/// where it says that we may not; Code::Corrupt for an answer that is longer than allowed, cut off or no answer at all;
/// Code::Unsupported for what it cannot do; Code::Cancelled where it was not asked at all, which says nothing of it. No
/// message has a credential in it.
class Depot {
 public:
  enum class Shelf : unsigned char {
    Action,   ///< `ac/<digest>`: the digest names a question
    Content,  ///< `cas/<digest>`: the digest is the body's SHA-256
  };
  using Time = std::chrono::nanoseconds;

  virtual ~Depot() = default;

  /// The body, or nothing. At most `most` bytes, and no longer than `limit`, whatever the other side does.
  virtual Result<std::optional<Bytes>> read(Shelf shelf, const Digest& name, std::uint64_t most, Time limit) = 0;
  /// Makes the body, its parts joined, appear whole in place of any that was there.
  virtual Status write(Shelf shelf, const Digest& name, std::initializer_list<std::string_view> parts, Time limit) = 0;
  /// One that is not there is no error.
  virtual Status remove(Shelf shelf, const Digest& name, Time limit) = 0;

  struct Listed {
    Digest name;
    std::uint64_t bytes = 0;
    std::chrono::nanoseconds modified{};  ///< wall time, by the depot's clock
  };
  /// Everything on a shelf, for people and for upkeep. Many servers cannot say: Code::Unsupported.
  virtual Result<std::vector<Listed>> list(Shelf shelf, Time limit) = 0;

  /// Removes what writers that died have left behind, for upkeep. Where nothing can be left there is nothing to do.
  virtual Status tidy(Time /*limit*/) { return {}; }
  /// Whether it answers at all.
  virtual Status probe(Time limit) = 0;
  /// For people, without credentials: "https://cache.example/kiln".
  virtual std::string describe() const = 0;
};

/// "ac", "cas".
inline const char* to_string(Depot::Shelf shelf) { return shelf == Depot::Shelf::Action ? "ac" : "cas"; }

}  // namespace kiln
