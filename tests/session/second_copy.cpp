// SPDX-License-Identifier: Apache-2.0
// A library that contains its own copy of kiln, loaded into a program that has one already.
#include <kiln/session.hpp>

#include <cstdio>

/// Returns the number of units that it compiled for an artifact of a kernel that the program may have requested too, or
/// −1 if there is no artifact.
extern "C" __attribute__((visibility("default"))) int second_copy_get(const char* cache) {
  kiln::SessionOptions options;
  options.settings["cache.dir"] = cache;
  kiln::Session session = kiln::Session::open(options).value();
  const kiln::Unit unit =
      kiln::Unit::cuda("shared", "extern \"C\" __global__ void f(int* x) { *x = 1; }").with_entry("f");
  if (!session.artifact(unit, kiln::Target::sm(80), std::chrono::seconds(60))) return -1;
  return static_cast<int>(session.status().compiled);
}
