// SPDX-License-Identifier: Apache-2.0
// Gets the artifacts of several kernels that start with the same headers, one after another, like a program that uses
// kiln, and prints the results, one line each. `pch_main NUMBER|smallNUMBER…`; everything else comes from KILN_*
// variables.
#include <chrono>
#include <cstdio>
#include <string>

#include <kiln/kiln.hpp>

#include "base/hash.hpp"
#include "support/fixtures/toolkit.hpp"

namespace {

// `7` includes CUB, `small7` a single header.
kiln::Unit unit_of(const std::string& name) {
  const bool small = name.starts_with("small");
  const std::string more = "extern \"C\" __global__ void more(int* p) { *p += " + name.substr(small ? 5 : 0) + "; }\n";
  const std::string begin = small ? "#include <nv/target>\n" : kiln::test::cub_source();
  kiln::Unit unit = kiln::Unit::cuda("unit" + name + ".cu", begin + more).with_options(kiln::test::cub_options());
  for (const std::string& root : kiln::test::cub_roots()) unit = unit.with_include_root(root);
  return unit.with_entry("more");
}

}  // namespace

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  kiln::SessionOptions options;
  options.on_event = [](const kiln::Event& event) {
    std::printf("event %s %s %s\n", to_string(event.kind), event.unit.c_str(), event.message.c_str());
    std::fflush(stdout);
  };
  auto session = kiln::Session::open(options);
  if (!session) {
    std::printf("error %s\n", session.error().message.c_str());
    return 1;
  }
  for (int i = 1; i < argc; ++i) {
    const auto start = Clock::now();
    const auto artifact = session->artifact(unit_of(argv[i]), kiln::Target::sm(80));
    if (!artifact) {
      std::printf("error %s\n", artifact.error().message.c_str());
      return 1;
    }
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    std::printf("got %s %s ms %.0f\n", argv[i], kiln::sha256(artifact->bytes.view()).hex().c_str(), ms);
  }
  return 0;
}
