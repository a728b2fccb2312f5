#pragma once

#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "trust/keys.hpp"

namespace kiln {

/// Adds a key for these namespaces to a policy file, and creates the file if it is missing. The rest of the file stays
/// as it is. Returns false, and writes nothing, if the file already trusts the key for all of them.
///
/// The new file replaces the old one atomically, after it has passed the checks of `read_trust_policy`: a file that a
/// program would reject is not published. Returns Code::Denied if the file is a link, if another user owns it or could
/// replace it, and if the policy has revoked the key. Processes that add keys at the same time wait for each other.
Result<bool> add_trusted_key(const std::string& path, const PublicKey& key, const std::vector<std::string>& namespaces);

}  // namespace kiln
