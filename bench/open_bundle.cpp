// SPDX-License-Identifier: Apache-2.0
// Opens a bundle as a session does, for bundle_open: `kiln-bench-bundle PATH PUBLIC_KEY` prints the nanoseconds from
// main until the bundle was open and its signature verified, and the number of pages of its index.
#include <cstdio>

#include "bench/support/harness.hpp"
#include "bundle/bundle.hpp"

int main(int argc, char** argv) {
  const std::int64_t start = kiln::bench::now_ns();
  if (argc != 3) return 2;
  const auto key = kiln::PublicKey::parse(argv[2]);
  if (!key) return 2;
  kiln::TrustPolicy policy;
  policy.add_key(*key, "bench");
  policy.require_epoch("*", 1);
  auto source = kiln::open_bundle_source(argv[1]);
  if (!source) return 1;
  const auto bundle = kiln::Bundle::open(std::move(*source), &policy);
  if (!bundle) {
    std::fprintf(stderr, "%s\n", bundle.error().message.c_str());
    return 1;
  }
  const std::int64_t end = kiln::bench::now_ns();
  std::printf("%lld %zu\n", static_cast<long long>(end - start), (*bundle)->header().pages.size());
  return 0;
}
