// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <kiln/result.hpp>

#include "remote/http/http_object_store.hpp"

namespace kiln {

/// Returns the options with a normalized URL (no trailing slash). Returns Code::InvalidArgument for invalid options and
/// for options that would disclose a secret: a user or password in the URL, which the message does not repeat; a query;
/// a token that would be sent to another machine over plain HTTP. Opens nothing.
Result<HttpOptions> validate_http_options(HttpOptions options);

}  // namespace kiln
