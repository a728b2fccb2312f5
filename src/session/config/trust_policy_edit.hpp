// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "trust/keys.hpp"

namespace kiln {

/// Adds a key for these namespaces to a policy file, and creates the file if it is missing. The rest of the file, its
/// mode and its group stay as they are. Missing directories are created: with mode 0700 in the configuration directory
/// of this user, and elsewhere with mode 0755, because programs of all users read the policy there. Returns false, and
/// writes nothing, if the file already trusts the key for all of them.
///
/// The new file replaces the old one atomically, after it has passed the checks of `read_trust_policy`: a file that a
/// program would reject is not published. Returns Code::Denied if the file is a link, if another user owns it or could
/// replace it, and if the policy has revoked the key. Processes that add keys at the same time wait for each other;
/// Code::TimedOut means that another process has locked the directory for longer than `lock_timeout`.
Result<bool> add_trusted_key(const std::string& path, const PublicKey& key, const std::vector<std::string>& namespaces,
                             std::chrono::milliseconds lock_timeout = std::chrono::seconds(10));

}  // namespace kiln
