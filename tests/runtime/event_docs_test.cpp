// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include <kiln/runtime/events.hpp>

#include "support/fixtures/files.hpp"

namespace kiln::test {
namespace {

TEST(RuntimeEventDocs, ListEveryEvent) {
  const std::string text = read_text(KILN_SOURCE_DIR "/docs/_generated/events.md");
  for (const EventType& type : runtime::events::kAll) {
    EXPECT_EQ(type.category, "runtime");
    EXPECT_NE(text.find("| `" + std::string(type.name) + "` "), std::string::npos)
        << "no row (run tools/make_reference) for " << type.name;
  }
}

}  // namespace
}  // namespace kiln::test
