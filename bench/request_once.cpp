// SPDX-License-Identifier: Apache-2.0
// The first request of a program, for request_18: prints the nanoseconds that the caller spent. No code of kiln has run
// in this process before, so its pages are loaded and the stack of the first thread is created during the call.
#include <cstdio>

#include "bench/support/harness.hpp"
#include "bench/support/no_op_engine.hpp"

int main() {
  using namespace kiln::bench;
  const std::vector<kiln::CompileRequest> requests = unseen_orders(18, 20'000);
  kiln::Engine engine(instant_resolver(), {});
  const std::int64_t start = now_ns();
  engine.request(requests);
  std::printf("%lld\n", static_cast<long long>(now_ns() - start));
  return 0;
}
