// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/list_claim.hpp"

#include <algorithm>

namespace kiln::jit {
namespace {

using namespace std::chrono_literals;

constexpr auto kListWait = 5s;

}  // namespace

std::unique_ptr<Claim> claim_list(Claims* claims, const std::string& key, const Deadline& deadline) {
  const Deadline wait(std::min<std::chrono::nanoseconds>(kListWait, deadline.remaining()));
  while (claims != nullptr) {
    auto acquired = claims->acquire(RequestKey::external("jit-update", key),
                                    std::chrono::duration_cast<std::chrono::milliseconds>(wait.remaining()), {});
    if (acquired.outcome != Claims::Outcome::ReleasedByOther) return std::move(acquired.claim);
  }
  return nullptr;
}

}  // namespace kiln::jit
