// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/clock.hpp"
#include "cache/claims.hpp"

namespace kiln::jit {

/// Waits until no other process updates the list of this key, for a few seconds at most. Returns null if the wait was
/// too short or `claims` is null: without the claim a line of another process could be lost, which its next publication
/// repairs.
std::unique_ptr<Claim> claim_list(Claims* claims, const std::string& key, const Deadline& deadline);

}  // namespace kiln::jit
