// A library that is opened when a session has long begun, and that brings a bundle with it.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <kiln/kiln.hpp>

#include "extension_units.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

TEST(LateBundle, IsFoundByASessionThatWasThereBeforeItsLibraryWasLoaded) {
  const TemporaryDirectory folder;
  SessionOptions options;
  options.settings = {{"cache.dir", folder.path()}, {"compile", "never"}};
  Session session = Session::open(options).value();
  const Unit heat = extension_units::heat_cu();
  EXPECT_FALSE(session.artifact(heat, Target::sm(90))) << "nobody has it yet, and nobody may compile it";

  void* library = dlopen(KILN_EMBEDDED_EXTENSION, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const Unit saxpy = extension_units::saxpy_cu();
  const auto artifact = session.artifact(saxpy, Target::sm(90));
  EXPECT_TRUE(artifact) << artifact.error().message;
  const auto again = session.artifact(heat, Target::sm(90));
  EXPECT_TRUE(again) << "that it was not to be had is not remembered: " << again.error().message;
  EXPECT_EQ(session.status().compiled, 0U);

  dlclose(library);
  EXPECT_TRUE(session.artifact(heat, Target::sm(90))) << "the session keeps what it uses";
}

}  // namespace
}  // namespace kiln::test
