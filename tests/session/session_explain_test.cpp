// SPDX-License-Identifier: Apache-2.0
// Sessions that explain hits and misses. NVRTC really compiles; nothing is executed.
#include <kiln/session.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>

#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/hang_timeout.hpp"

namespace kiln::test {
namespace {

Unit kernel(const std::string& name = "k.cu") {
  return Unit::cuda(name, "extern \"C\" __global__ void k(int* x) { *x = 1; }").with_entry("k");
}

class SessionExplain : public testing::Test {
 protected:
  Session open(SessionOptions options = {}) {
    options.settings["cache.dir"] = cache_.path();
    options.locked.insert("cache.dir");
    return Session::open(std::move(options)).value();
  }
  TemporaryDirectory cache_;
};

TEST_F(SessionExplain, ResolveReturnsKeysAndOriginOfArtifact) {
  const auto first = open().resolve(kernel(), Target::sm(80));
  ASSERT_TRUE(first.has_value()) << first.error().message;
  EXPECT_EQ(first->origin, Origin::Compiled);
  EXPECT_GT(first->ms, 0);
  EXPECT_EQ(first->uncacheable_reason, "");
  const auto second = open().resolve(kernel(), Target::sm(80));
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->origin, Origin::Disk);
  EXPECT_EQ(second->key, first->key);
  EXPECT_EQ(second->request, first->request);
  EXPECT_EQ(second->artifact.bytes, first->artifact.bytes);
}

TEST_F(SessionExplain, ExplainsMissAndHitWithoutCompiling) {
  std::atomic<int> compiled{0};
  SessionOptions options;
  options.on_event = [&](const Event& event) { compiled += event.kind == Event::Kind::Compiled ? 1 : 0; };
  Session session = open(options);
  EXPECT_FALSE(session.explain(kernel(), Target::sm(80))->hit);
  EXPECT_FALSE(session.recorded_cost_ms(kernel(), Target::sm(80)));
  EXPECT_EQ(compiled, 0);
  const ResolvedArtifact made = session.resolve(kernel(), Target::sm(80)).value();
  const Explanation hit = session.explain(kernel(), Target::sm(80)).value();
  EXPECT_TRUE(hit.hit);
  ASSERT_TRUE(hit.artifact);
  EXPECT_EQ(hit.artifact->key, made.key);
  const Explanation miss = session.explain(kernel().with_option("-use_fast_math"), Target::sm(80)).value();
  EXPECT_FALSE(miss.hit);
  ASSERT_EQ(miss.differences.size(), 1U);
  EXPECT_EQ(miss.differences[0].input, "option");
  EXPECT_EQ(miss.differences[0].after, "-use_fast_math");
  ASSERT_TRUE(miss.nearest);
  EXPECT_EQ(miss.nearest->key, made.key);
  EXPECT_EQ(session.recorded_cost_ms(kernel(), Target::sm(80)), miss.nearest->cost_ms);
  EXPECT_FALSE(session.recorded_cost_ms(kernel(), Target::sm(90)));
  EXPECT_EQ(compiled, 1);
  EXPECT_TRUE(session.wait_for_uploads(std::chrono::seconds(0))) << "there is no remote store";
}

TEST_F(SessionExplain, WorksOnNoMoreRequestedUnitsAtOnceThanAllowed) {
  SessionOptions options;
  options.max_background_compiles = 1;
  Session session = open(options);
  Units units;
  for (int i = 0; i < 6; ++i)
    units.push_back(kernel("k" + std::to_string(i) + ".cu").with_option("-DX=" + std::to_string(i)));
  session.request(units, Target::sm(80));
  std::ptrdiff_t most = 0;
  const auto ended = [&] {
    const SessionStatus status = session.status();
    most = std::max(most, std::count_if(status.units.begin(), status.units.end(), [](const UnitStatus& unit) {
                      return unit.state == UnitStatus::State::Running;
                    }));
    return status.pending == 0;
  };
  ASSERT_TRUE(eventually(ended, kHangTimeout));
  EXPECT_EQ(session.status().compiled, 6U);
  EXPECT_EQ(most, 1);
}

}  // namespace
}  // namespace kiln::test
