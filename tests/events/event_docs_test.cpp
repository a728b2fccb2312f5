// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include <kiln/event.hpp>

#include "events/metrics.hpp"
#include "support/fixtures/files.hpp"

namespace kiln {
namespace {

TEST(EventDocs, ListEveryKind) {
  const std::string text = test::read_text(KILN_SOURCE_DIR "/docs/_generated/events.md");
  for (std::size_t kind = 0; kind < Metrics::kKinds; ++kind) {
    const std::string name = to_string(static_cast<Event::Kind>(kind));
    EXPECT_NE(name, "unknown") << kind;
    EXPECT_NE(text.find("| `" + name + "` "), std::string::npos) << "no row (run tools/make_reference) for " << name;
  }
}

TEST(EventDocs, MetricsCountEveryKind) {
  EXPECT_STREQ(to_string(static_cast<Event::Kind>(Metrics::kKinds)), "extension");
  EXPECT_STREQ(to_string(static_cast<Event::Kind>(Metrics::kKinds + 1)), "unknown")
      << "a kind was added after Extension: Metrics::kKinds must count it";
}

}  // namespace
}  // namespace kiln
