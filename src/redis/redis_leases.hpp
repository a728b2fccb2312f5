#pragma once

#include <memory>
#include <string>

#include <kiln/result.hpp>

#include "remote/lease_table.hpp"

namespace kiln {

struct RedisOptions {
  std::string url;            ///< redis://[user@]host[:port][/database]; a password in it is refused
  std::string password_file;  ///< its first line
  std::string ca_file;        ///< of rediss://
};

/// Leases in Redis: `SET NX PX` takes one, scripts that compare the owner renew and release it. One connection, opened
/// by the first call and again after it broke. docs/leases.md has the names of the keys. `rediss://` is
/// Code::Unsupported where hiredis was built without TLS; that page has the sidecar. Code::Unsupported too where
/// kiln was built without hiredis.
Result<std::unique_ptr<LeaseTable>> open_redis_leases(RedisOptions options);

}  // namespace kiln
