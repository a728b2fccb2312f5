#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <kiln/runtime/runtime.hpp>

#include "runtime/knowledge.hpp"
#include "runtime/wishes.hpp"

namespace kiln::runtime {

/// What is to be chosen: one backend for all of these operations.
struct Question {
  const char* name;  ///< of the operation or the workflow
  std::span<const Operation* const> operations;
  Request request;
  Wishes wishes;
};

/// A decision without its number, and the numbers of rows for which it would have been the same: from `low` to below
/// `high`.
struct Choice {
  Decision decision;
  std::uint64_t low = 0;
  std::uint64_t high = kNever;
};

/// Among the variants of one backend the one of this precision, else the one in double precision, else the first; null
/// where there is none, or none that is deterministic where only those count.
const Variant* variant_of(const Operation& operation, Backend backend, Precision planned, bool deterministic);

/// For a sentence: " that is deterministic (which was asked for)", or nothing.
std::string determinism_text(const RuntimeOptions& options);

/// Opens a driver only where the choice hangs on it.
Result<Choice> choose(const Question& question, const RuntimeOptions& options, Session& session, Knowledge& knowledge);

}  // namespace kiln::runtime
