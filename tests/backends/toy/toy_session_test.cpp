// SPDX-License-Identifier: Apache-2.0
// The toy backend in a session, which finds it in the table like every other.
#include <kiln/session.hpp>

#include <gtest/gtest.h>

#include "backends/factory/backend_table.hpp"
#include "backends/toy/toy_backend.hpp"
#include "backends/toy/toy_fixture.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

class ToySession : public testing::Test {
 protected:
  static void SetUpTestSuite() { add_backend(toy_backend()); }

  Session open(EventLog& log) {
    SessionOptions options;
    options.settings["cache.dir"] = directory_.path("cache");
    options.on_event = log.callback();
    return Session::open(std::move(options)).value();
  }
  static std::vector<float> saxpy(const Kernel& kernel) {
    int stream = 0;  // the device accepts any
    const std::vector<float> x = {1, 2, 3};
    std::vector<float> y = {10, 20, 30};
    kernel.launch({Grid(1), Block(4), StreamRef::from_native(&stream)}, 3U, 2.0F, x.data(), y.data()).value();
    return y;
  }

  TemporaryDirectory directory_;
};

TEST_F(ToySession, CompilesRequestOnceAndNextSessionFindsItOnDisk) {
  const std::vector<float> expected = {12, 24, 36};
  {
    EventLog log;
    Session session = open(log);
    session.request(Units{toy_saxpy()});
    EXPECT_EQ(saxpy(session.get(toy_saxpy(), "saxpy").value()), expected);
    EXPECT_EQ(log.count(Event::Kind::Compiled), 1U);
    EXPECT_EQ(log.count(Event::Kind::Published), 1U);
  }
  EventLog log;
  Session session = open(log);
  const Kernel kernel = session.get(toy_saxpy(), "saxpy").value();
  EXPECT_EQ(saxpy(kernel), expected);
  ASSERT_EQ(log.count(Event::Kind::Hit), 1U);
  EXPECT_EQ(log.of(Event::Kind::Hit).front().origin, "disk");
  EXPECT_EQ(kernel.target(), toy_target());
  EXPECT_EQ(log.count(Event::Kind::Compiled), 0U);
}

TEST_F(ToySession, ReportsLogOfRejectedSource) {
  EventLog log;
  Session session = open(log);
  const auto kernel = session.get(Unit::of_kind(kToyKind, "broken.toy", "kernel broken count\n  jump\n"), "broken");
  ASSERT_FALSE(kernel.has_value());
  EXPECT_EQ(kernel.error().code, Code::CompileFailed);
  EXPECT_NE(kernel.error().log.find("line 2: 'jump' is not an instruction"), std::string::npos) << kernel.error().log;
}

}  // namespace
}  // namespace kiln::test
