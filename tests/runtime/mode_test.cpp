// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/fixtures/runtime_fixture.hpp"

namespace kiln::test {
namespace {

using runtime::Mode;
using runtime::Runtime;
using runtime::RuntimeOptions;
using runtime::SettingSource;

class ModeTest : public testing::Test {
 protected:
  RuntimeFixture fixture_;
};

TEST_F(ModeTest, DefaultIsAuto) {
  const Runtime runtime(fixture_.session());
  EXPECT_EQ(runtime.mode(), Mode::Auto);
  EXPECT_EQ(runtime.mode_source(), SettingSource::Default);
}

TEST_F(ModeTest, OverridePrecedesEnvironmentPrecedesDefault) {
  fixture_.mode.set("cpu");
  Runtime runtime(fixture_.session());
  EXPECT_EQ(runtime.mode(), Mode::Cpu);
  EXPECT_EQ(runtime.mode_source(), SettingSource::Environment);
  runtime.set_mode(Mode::Gpu);
  EXPECT_EQ(runtime.mode(), Mode::Gpu);
  EXPECT_EQ(runtime.mode_source(), SettingSource::Override);
  runtime.set_mode(std::nullopt);
  EXPECT_EQ(runtime.mode(), Mode::Cpu);
  RuntimeOptions options;
  options.mode = Mode::Auto;
  EXPECT_EQ(Runtime(fixture_.session(), options).mode(), Mode::Auto);
}

TEST_F(ModeTest, EnvironmentIsReadOnceAndAgainAfterModeIsSet) {
  fixture_.mode.set("cpu");
  Runtime runtime(fixture_.session());
  EXPECT_EQ(runtime.mode(), Mode::Cpu);
  fixture_.mode.set("gpu");
  EXPECT_EQ(runtime.mode(), Mode::Cpu);
  runtime.set_mode(std::nullopt);
  EXPECT_EQ(runtime.mode(), Mode::Gpu);
}

TEST_F(ModeTest, InvalidValueIsReportedOnceAndIgnored) {
  fixture_.mode.set("GPU");
  Runtime runtime(fixture_.session());
  EXPECT_EQ(runtime.mode(), Mode::Auto);
  EXPECT_EQ(runtime.mode_source(), SettingSource::Default);
  runtime.set_mode(std::nullopt);
  EXPECT_EQ(runtime.mode(), Mode::Auto);
  const Event reported = fixture_.only(Event::Kind::ConfigWarning);
  EXPECT_TRUE(has(reported.message, "KILN_EXECUTION_MODE"));
  EXPECT_TRUE(has(reported.message, "auto, cpu or gpu"));
}

TEST_F(ModeTest, EmptyVariableCountsAsUnset) {
  fixture_.mode.set("");
  const Runtime runtime(fixture_.session());
  EXPECT_EQ(runtime.mode_source(), SettingSource::Default);
  EXPECT_EQ(fixture_.log.count(Event::Kind::ConfigWarning), 0U);
}

TEST_F(ModeTest, CopiesShareMode) {
  Runtime runtime(fixture_.session());
  const Runtime copy = runtime;
  runtime.set_mode(Mode::Cpu);
  EXPECT_EQ(copy.mode(), Mode::Cpu);
}

TEST_F(ModeTest, SessionAcceptsRuntimeVariables) {
  fixture_.mode.set("auto");
  fixture_.rewrites.set("on");
  fixture_.time_stages.set("0");
  Session session = fixture_.session();
  (void)session.devices(kiln::Backend::Cuda);  // loads the configuration
  EXPECT_EQ(fixture_.log.count(Event::Kind::ConfigWarning), 0U);
}

TEST_F(ModeTest, NamesRoundTrip) {
  for (const Mode mode : {Mode::Auto, Mode::Cpu, Mode::Gpu}) EXPECT_EQ(runtime::parse_mode(to_string(mode)), mode);
  EXPECT_EQ(runtime::parse_mode("Auto"), std::nullopt);
}

}  // namespace
}  // namespace kiln::test
