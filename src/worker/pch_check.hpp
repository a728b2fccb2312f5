// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "core/recipe.hpp"
#include "worker/worker_protocol.hpp"

namespace kiln {

/// The result of checking whether an NVRTC library produces the same output with precompiled headers as without, or
/// whether headers can be precompiled. A value type.
struct PchVerdict {
  enum class Kind : std::uint8_t {
    Unusable = 0,  ///< this worker cannot create or use any; not a result for the library, not stored
    Good = 1,
    Differs = 2,   ///< different output, different log, or a unit that no longer compiles; headers: not shareable
    Rejected = 3,  ///< the library creates or accepts none, or crashes its worker; headers: not created or not stored
  };
  Kind kind = Kind::Unusable;
  std::string reason;                ///< human-readable reason; empty for Good
  std::chrono::nanoseconds made{0};  ///< time of the check (system clock)
};

/// Runs a job in a worker. Returns Code::CompileFailed if the unit did not compile, Code::Internal if the worker
/// crashed, and Code::Cancelled if the worker was killed externally.
using AskWorker = std::function<Result<WorkerReply>(const WorkerJob&)>;

/// Checks precompiled headers with six compiles of small units in one worker: without a precompiled header, creating
/// one, using it, without one, and using it again. It compares every output with that of the first compile. The
/// sequence also detects state that a program leaves in the compiler's heap, which the worker retains
/// (docs/internals/decisions/0005.md). `like` gives the architecture and the working directory, `nvrtc` the
/// library, and `create` the request to create the precompiled header. Returns nothing if the units do not compile even
/// without precompiled headers, or if a job was killed externally.
std::optional<PchVerdict> check_pch(const Recipe& like, const CompilerIdentity& nvrtc, const PchRequest& create,
                                    const AskWorker& ask);

/// Returns the key of a check result for this library. It contains kiln's version: another version repeats the check.
Digest pch_verdict_key(const CompilerIdentity& nvrtc);

/// Returns the key under which it is stored that headers could not be precompiled. It contains what such a failure can
/// depend on besides the headers: kiln's version, the limit of the cache and the memory limit of a worker, in bytes.
Digest pch_failure_key(const Digest& headers, std::uint64_t max_bytes, std::uint64_t worker_memory);

/// Returns the time when a check result expires (system clock): a rejection after a day, others after 30 days.
std::chrono::nanoseconds expiry_of(const PchVerdict& verdict);
/// Returns false if a check result has expired or, due to a clock that was wrong, is from the future.
bool is_current(const PchVerdict& verdict, std::chrono::nanoseconds now);

/// Encodes the file of a check result: docs/internals/formats/pch.md. `verdict` is not Unusable.
std::string encode_verdict(const Digest& key, const std::string& host, const PchVerdict& verdict);
/// Returns Code::Corrupt for bytes that are corrupt or have another version, key or host.
Result<PchVerdict> decode_verdict(std::string_view bytes, const Digest& key, const std::string& host);

}  // namespace kiln
