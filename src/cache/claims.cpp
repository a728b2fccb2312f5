// SPDX-License-Identifier: Apache-2.0
#include "cache/claims.hpp"

#include "base/codec.hpp"
#include "base/hash.hpp"

namespace kiln {

RequestKey takeover_of(const RequestKey& request, int level) {
  if (level == 0) return request;
  BinaryWriter out;
  out.text("kiln takeover 1").digest(request.digest).u32(static_cast<std::uint32_t>(level));
  return {sha256(out.bytes())};
}

}  // namespace kiln
