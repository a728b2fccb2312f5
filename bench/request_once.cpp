// A program's first request, for request_18: prints how many nanoseconds the caller paid for it. Nothing of kiln has
// run in this process before, so its code comes in page by page and the first thread has a stack to be made.
#include <cstdio>

#include "bench/harness.hpp"
#include "bench/instant_engine.hpp"

int main() {
  using namespace kiln::bench;
  const std::vector<kiln::Order> orders = unseen_orders(18, 20'000);
  kiln::Engine engine(instant_parts());
  const std::int64_t start = now_ns();
  engine.request(orders);
  std::printf("%lld\n", static_cast<long long>(now_ns() - start));
  return 0;
}
