// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <kiln/result.hpp>

#include "remote/lease_table.hpp"

namespace kiln {

struct RedisOptions {
  std::string url;            ///< redis://[user@]host[:port][/database]; a URL with a password is rejected
  std::string password_file;  ///< file whose first line is the password
};

/// Opens a lease table in Redis. `SET NX PX` acquires a lease; scripts that compare the owner renew and release it. It
/// uses one connection, opened by the first call and reopened after a failure. docs/internals/formats/remote.md lists
/// the keys. Returns Code::InvalidArgument for an invalid URL and for a password that would be sent unencrypted to
/// another machine. `rediss://` is Code::Unsupported; docs/how-to/share-a-cache.md describes the proxy.
/// Returns Code::Unsupported too if kiln was built without hiredis.
Result<std::unique_ptr<LeaseTable>> open_redis_leases(RedisOptions options);

}  // namespace kiln
