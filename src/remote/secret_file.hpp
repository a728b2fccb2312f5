// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <kiln/result.hpp>

namespace kiln {

/// Returns the first line of a token or password file without its line end, or nothing if the file does not exist.
/// Returns Code::Denied for a file that other users own, or can read or write (FileUse::Secret). No error message
/// contains the secret.
Result<std::optional<std::string>> read_secret(const std::string& path);

/// Returns whether a host name, or an address without brackets, is the loopback of this machine, the only host to which
/// a secret is sent unencrypted. Sends no DNS query.
bool is_this_machine(std::string_view host);

}  // namespace kiln
