// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "base/hash.hpp"
#include "cache/local_claims.hpp"

int main(int, char** arguments) {
  const kiln::Claims::AcquireResult answer =
      kiln::LocalClaims(arguments[1]).acquire({kiln::sha256("once")}, std::chrono::milliseconds(0), {});
  std::cout << static_cast<int>(answer.outcome) << ' ' << answer.reason << '\n';
  return 0;
}
