// SPDX-License-Identifier: Apache-2.0
// A library with a bundle that is loaded after a session was opened.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <kiln/kiln.hpp>

#include "extension_units.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

TEST(LateBundle, IsFoundBySessionOpenedBeforeLibraryWasLoaded) {
  const TemporaryDirectory directory;
  SessionOptions options;
  options.settings = {{"cache.dir", directory.path()}, {"compile", "never"}};
  Session session = Session::open(options).value();
  const Unit heat = extension_units::heat_cu();
  EXPECT_FALSE(session.artifact(heat, Target::sm(90))) << "it is not available yet, and compiling is disabled";

  void* library = dlopen(KILN_EMBEDDED_EXTENSION, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const Unit saxpy = extension_units::saxpy_cu();
  const auto artifact = session.artifact(saxpy, Target::sm(90));
  EXPECT_TRUE(artifact) << artifact.error().message;
  const auto again = session.artifact(heat, Target::sm(90));
  EXPECT_TRUE(again) << "the earlier miss must not be cached: " << again.error().message;
  EXPECT_EQ(session.status().compiled, 0U);

  dlclose(library);
  EXPECT_TRUE(session.artifact(heat, Target::sm(90))) << "the session must keep the library loaded";
}

}  // namespace
}  // namespace kiln::test
