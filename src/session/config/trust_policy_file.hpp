// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <kiln/result.hpp>

#include "events/event_emitter.hpp"
#include "session/config/config.hpp"
#include "trust/policy.hpp"

namespace kiln {

/// Parses the text of a policy file; docs/reference/trust-policy.md has its grammar. Code::InvalidArgument names line
/// and column. Accepts arbitrary bytes.
Result<TrustPolicy> parse_trust_policy(std::string_view text);
/// Reads and parses the file. An error names it. Returns Code::Denied if another user owns it or can have written to
/// it, and Code::Io if it does not exist.
Result<TrustPolicy> read_trust_policy(const std::string& path);

/// Returns the trust policy of this machine's settings.
Result<TrustPolicy> configured_policy(const Config& config);
/// Returns the trust policy of a process: the program's keys and those of the settings. If a part of it cannot be used,
/// emits an event and returns a policy that trusts no key.
TrustPolicy make_trust_policy(const TrustOptions& program, const Config& config, const EventEmitter& emitter);

}  // namespace kiln
