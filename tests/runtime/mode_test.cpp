#include <gtest/gtest.h>

#include "support/runtime_rig.hpp"

namespace kiln::test {
namespace {

using runtime::Mode;
using runtime::Runtime;
using runtime::RuntimeOptions;
using runtime::Source;

class ModeTest : public testing::Test {
 protected:
  RuntimeRig rig_;
};

TEST_F(ModeTest, WithoutAWordItIsAuto) {
  const Runtime runtime(rig_.session());
  EXPECT_EQ(runtime.mode(), Mode::Auto);
  EXPECT_EQ(runtime.mode_source(), Source::Default);
}

TEST_F(ModeTest, TheOverrideIsStrongerThanTheEnvironmentWhichIsStrongerThanAuto) {
  rig_.mode.set("cpu");
  Runtime runtime(rig_.session());
  EXPECT_EQ(runtime.mode(), Mode::Cpu);
  EXPECT_EQ(runtime.mode_source(), Source::Environment);
  runtime.set_mode(Mode::Gpu);
  EXPECT_EQ(runtime.mode(), Mode::Gpu);
  EXPECT_EQ(runtime.mode_source(), Source::Override);
  runtime.set_mode(std::nullopt);
  EXPECT_EQ(runtime.mode(), Mode::Cpu);
  RuntimeOptions options;
  options.mode = Mode::Auto;
  EXPECT_EQ(Runtime(rig_.session(), options).mode(), Mode::Auto);
}

TEST_F(ModeTest, TheEnvironmentIsReadOnceAndAgainAfterTheModeWasSet) {
  rig_.mode.set("cpu");
  Runtime runtime(rig_.session());
  EXPECT_EQ(runtime.mode(), Mode::Cpu);
  rig_.mode.set("gpu");
  EXPECT_EQ(runtime.mode(), Mode::Cpu);
  runtime.set_mode(std::nullopt);
  EXPECT_EQ(runtime.mode(), Mode::Gpu);
}

TEST_F(ModeTest, AnUnknownValueIsToldOnceWithTheGoodOnesAndCountsAsNotSet) {
  rig_.mode.set("GPU");
  Runtime runtime(rig_.session());
  EXPECT_EQ(runtime.mode(), Mode::Auto);
  EXPECT_EQ(runtime.mode_source(), Source::Default);
  runtime.set_mode(std::nullopt);
  EXPECT_EQ(runtime.mode(), Mode::Auto);
  const Event told = rig_.only(Event::Kind::Configuration);
  EXPECT_TRUE(has(told.message, "KILN_EXECUTION_MODE"));
  EXPECT_TRUE(has(told.message, "auto, cpu, gpu"));
}

TEST_F(ModeTest, AnEmptyVariableIsNotSet) {
  rig_.mode.set("");
  const Runtime runtime(rig_.session());
  EXPECT_EQ(runtime.mode_source(), Source::Default);
  EXPECT_EQ(rig_.log.count(Event::Kind::Configuration), 0U);
}

TEST_F(ModeTest, CopiesShareIt) {
  Runtime runtime(rig_.session());
  const Runtime copy = runtime;
  runtime.set_mode(Mode::Cpu);
  EXPECT_EQ(copy.mode(), Mode::Cpu);
}

TEST_F(ModeTest, ASessionKnowsTheVariablesOfTheLibraryOnTopOfIt) {
  rig_.mode.set("auto");
  rig_.rewrites.set("on");
  rig_.time_stages.set("0");
  Session session = rig_.session();
  (void)session.devices("cuda");  // loads the configuration
  EXPECT_EQ(rig_.log.count(Event::Kind::Configuration), 0U);
}

TEST_F(ModeTest, NamesAreReadBack) {
  for (const Mode mode : {Mode::Auto, Mode::Cpu, Mode::Gpu}) EXPECT_EQ(runtime::parse_mode(to_string(mode)), mode);
  EXPECT_EQ(runtime::parse_mode("Auto"), std::nullopt);
}

}  // namespace
}  // namespace kiln::test
