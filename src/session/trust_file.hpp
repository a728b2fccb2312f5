#pragma once

#include <string>
#include <string_view>

#include <kiln/result.hpp>

#include "trust/policy.hpp"

namespace kiln {

/// What the text of a policy file says; docs/trust.md has its grammar. Code::InvalidArgument names line and column. Any
/// bytes may be given.
Result<TrustPolicy> parse_trust_policy(std::string_view text);
/// Reads the file; an error names it. Code::Refused where others could have written to it, Code::Io where there is
/// none.
Result<TrustPolicy> read_trust_policy(const std::string& path);

}  // namespace kiln
