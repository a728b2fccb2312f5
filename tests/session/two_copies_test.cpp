// SPDX-License-Identifier: Apache-2.0
// Two copies of kiln in one process, as when two libraries each contain it: they share only the cache.
#include <kiln/session.hpp>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <thread>

#include "support/fixtures/temporary_directory.hpp"

namespace kiln {
namespace {

using Get = int (*)(const char* cache);

Get second_copy() {
  void* library = dlopen(KILN_SECOND_COPY, RTLD_NOW | RTLD_LOCAL);
  return library != nullptr ? reinterpret_cast<Get>(dlsym(library, "second_copy_get")) : nullptr;
}

std::size_t compiles_here(const std::string& cache) {
  SessionOptions options;
  options.settings["cache.dir"] = cache;
  Session session = Session::open(options).value();
  const Unit unit = Unit::cuda("shared", "extern \"C\" __global__ void f(int* x) { *x = 1; }").with_entry("f");
  EXPECT_TRUE(session.artifact(unit, Target::sm(80), std::chrono::seconds(60)).has_value());
  return session.status().compiled;
}

TEST(TwoCopies, ShareCompiledCodeThroughCache) {
  const Get get = second_copy();
  ASSERT_NE(get, nullptr) << dlerror();
  test::TemporaryDirectory cache;
  EXPECT_EQ(compiles_here(cache.path()), 1U);
  EXPECT_EQ(get(cache.path().c_str()), 0);
  test::TemporaryDirectory other;
  EXPECT_EQ(get(other.path().c_str()), 1);
  EXPECT_EQ(compiles_here(other.path()), 0U);
}

// Record locks belong to the process, so both copies acquire the same key: at worst both compile, and neither waits.
TEST(TwoCopies, BothGetMissingKeyConcurrently) {
  const Get get = second_copy();
  ASSERT_NE(get, nullptr) << dlerror();
  for (int round = 0; round < 5; ++round) {
    test::TemporaryDirectory cache;
    int theirs = -1;
    std::thread second([&] { theirs = get(cache.path().c_str()); });
    const std::size_t ours = compiles_here(cache.path());
    second.join();
    EXPECT_GE(theirs, 0);
    EXPECT_GE(ours + static_cast<std::size_t>(theirs), 1U);
  }
}

}  // namespace
}  // namespace kiln
