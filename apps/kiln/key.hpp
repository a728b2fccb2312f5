// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <kiln/result.hpp>

#include "trust/keys.hpp"

namespace kiln::cli {

/// Returns the public key of an argument: a file with a secret or public key, or the text of a public key.
Result<PublicKey> public_key_of(const std::string& argument);

}  // namespace kiln::cli
