#include "base/error.hpp"
#include "redis/redis_leases.hpp"

namespace kiln {

Result<std::unique_ptr<LeaseTable>> open_redis_leases(RedisOptions) {
  return failure(Code::Unsupported, "kiln was built without Redis; build it where hiredis is installed");
}

}  // namespace kiln
