#pragma once

#include <string>

#include <kiln/result.hpp>

#include "http/http_depot.hpp"

namespace kiln {

/// The options with a tidy URL (no slash at its end). Code::InvalidArgument for what makes no sense or would give a
/// secret away: a user or a password in the URL, which the message does not repeat; a query; a token that would travel
/// over plain HTTP to another machine. Opens nothing.
Result<HttpOptions> checked(HttpOptions options);

}  // namespace kiln
