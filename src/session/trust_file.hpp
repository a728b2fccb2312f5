#pragma once

#include <string>
#include <string_view>

#include <kiln/result.hpp>

#include "observe/observer.hpp"
#include "session/config.hpp"
#include "trust/policy.hpp"

namespace kiln {

/// What the text of a policy file says; docs/trust.md has its grammar. Code::InvalidArgument names line and column. Any
/// bytes may be given.
Result<TrustPolicy> parse_trust_policy(std::string_view text);
/// Reads the file; an error names it. Code::Refused where others could have written to it, Code::Io where there is
/// none.
Result<TrustPolicy> read_trust_policy(const std::string& path);

/// Whom this machine believes, as its settings say.
Result<TrustPolicy> configured_policy(const Config& config);
/// Whom a process believes: the program's keys, and those of the settings. What of it cannot be used is an event, and
/// believes nobody.
TrustPolicy trust_policy_of(const Trust& program, const Config& config, const Observer& observer);

}  // namespace kiln
