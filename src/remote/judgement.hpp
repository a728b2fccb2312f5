#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/bytes.hpp>
#include <kiln/key.hpp>

#include "core/closure.hpp"
#include "trust/policy.hpp"
#include "trust/signed_statement.hpp"

namespace kiln {

/// Why something from a remote store is not believed; the word that events carry in `selected`.
enum class RemoteFault : unsigned char {
  NotAnActionResult,   ///< the body of `ac/` cannot be read as one
  NoStatement,         ///< it has no signed statement of kiln's
  StatementMalformed,  ///< or one that is damaged, or of another version
  Distrusted,          ///< the policy does not believe it; the word is the policy's (trust/policy.hpp)
  ContentMissing,      ///< what it states is not there
  ContentDiffers,      ///< another content than was stated, or another size
  EntryMalformed,      ///< the stated content is no entry of this key: its signer was wrong
  TooLarge,
  HintMalformed,  ///< closures that cannot be read
  HintHostile,    ///< or that name what a remote may not name
};
const char* to_string(RemoteFault fault);

/// Why a body is rejected: the word for events and counts, and a sentence for people.
struct Rejection {
  RemoteFault fault = RemoteFault::NotAnActionResult;
  std::string word;
  std::string message;
  /// Whether the server gave what nobody can have meant. Not where it forgot a content, and not where it has what
  /// others believe: whose word counts here is this host's affair, and a store that CI and live hosts share has both.
  bool against_server = true;

  static Rejection of(RemoteFault fault, std::string message) {
    return {fault, to_string(fault), std::move(message), true};
  }
};

/// What an `ac/` body of an entry says, as far as it could be read, and whether a reader with this policy goes on to
/// fetch the content.
struct JudgedAction {
  std::optional<SignedStatement> stated;
  std::uint64_t size = 0;  ///< of the content that it states
  std::optional<Rejection> rejection;
};
JudgedAction judge_action(const Key& key, const Bytes& body, const TrustPolicy& policy, std::chrono::nanoseconds wall);

/// Whether a body is the content that a believed action states, and the artifact in it. Its digest is compared before
/// anything in it is parsed.
struct JudgedContent {
  std::optional<Artifact> artifact;
  std::optional<Rejection> rejection;
};
JudgedContent judge_content(const Key& key, const JudgedAction& action, const Bytes& body);

/// The closures of an `ac/` body of a request, newest first, at most `limit` of them. One that may not travel rejects
/// them all: no host of ours has sent it.
struct JudgedHints {
  std::vector<Closure> closures;
  std::optional<Rejection> rejection;
};
JudgedHints judge_hints(const RequestKey& request, const Bytes& body, std::size_t limit);

/// Whether every item of a closure lies below an include root or the working folder, by a relative name without `..`:
/// the only closures that a remote store takes or gives.
bool may_travel(const Closure& closure);

/// What the statement for an entry speaks of, and where the closures of a request lie.
std::string entry_subject(const Key& key);
Digest closures_place(const RequestKey& request);
/// The name of the one file in an entry's ActionResult.
inline constexpr const char* kEntryFile = "entry";

}  // namespace kiln
