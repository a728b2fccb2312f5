// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "remote/redis/redis_leases.hpp"

namespace kiln {

Result<std::unique_ptr<LeaseTable>> open_redis_leases(RedisOptions) {
  return make_error(Code::Unsupported, "kiln was built without Redis support; install hiredis and rebuild");
}

}  // namespace kiln
