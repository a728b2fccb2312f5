// SPDX-License-Identifier: Apache-2.0
// Units of every kind that is compiled without a device, through a session and its components.
#include <kiln/session.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "support/fixtures/event_log.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/toolkit.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

class Kinds : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    write_text(directory_.path("factor.h"), "#define FACTOR 3\n");
    std::this_thread::sleep_for(30ms);
  }
  Session open(EventLog& log) {
    SessionOptions options;
    options.settings["cache.dir"] = directory_.path("cache");
    options.on_event = log.callback();
    return Session::open(std::move(options)).value();
  }
  Unit caller() const {
    return Unit::cuda("caller.cu",
                      "extern __device__ int twice(int);\n"
                      "extern \"C\" __global__ void k(int* p) { *p = twice(*p); }\n")
        .with_option("-rdc=true")
        .with_entry("k");
  }
  Unit callee() const {
    return Unit::cuda("callee.cu", "#include \"factor.h\"\n__device__ int twice(int x) { return FACTOR * x; }\n")
        .with_option("-rdc=true")
        .with_include_root(directory_.path());
  }
  Unit linked() const {
    return Unit::link("whole", {LinkPart::unit(caller()), LinkPart::unit(callee())}).with_entry("k");
  }

  TemporaryDirectory directory_;
};

TEST_F(Kinds, LinkedUnitAndPartsAreCompiledOnceAndCached) {
  std::string bytes;
  {
    EventLog log;
    Session session = open(log);
    const auto whole = session.artifact(linked(), Target::sm(80), 60s);
    ASSERT_TRUE(whole.has_value()) << whole.error().message << whole.error().log;
    EXPECT_EQ(log.count(Event::Kind::Compiled), 3U) << "two parts and the linked unit";
    EXPECT_EQ(log.count(Event::Kind::Published), 3U);
    bytes = whole->bytes.view();
  }
  {
    EventLog log;
    Session session = open(log);
    const auto again = session.artifact(linked(), Target::sm(80), 60s);
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_EQ(again->bytes.view(), bytes);
    EXPECT_EQ(log.count(Event::Kind::Compiled), 0U);
    EXPECT_EQ(log.count(Event::Kind::Hit), 1U) << "the linked unit is found without its parts";
  }
  write_text(directory_.path("factor.h"), "#define FACTOR 5\n");
  std::this_thread::sleep_for(30ms);
  EventLog log;
  Session session = open(log);
  const auto changed = session.artifact(linked(), Target::sm(80), 60s);
  ASSERT_TRUE(changed.has_value()) << changed.error().message;
  EXPECT_NE(changed->bytes.view(), bytes);
  EXPECT_EQ(log.count(Event::Kind::Compiled), 2U) << "the part that reads the header, and the linked unit";
}

TEST_F(Kinds, NvccUnitIsFoundByNextSession) {
  const Unit unit =
      Unit::command("k.cu", "#include \"factor.h\"\nextern \"C\" __global__ void k(int* p) { *p = FACTOR; }\n",
                    nvcc_template())
          .with_include_root(directory_.path())
          .with_entry("k");
  std::string bytes;
  for (const std::size_t compiles : {1U, 0U}) {
    EventLog log;
    Session session = open(log);
    const auto artifact = session.artifact(unit, Target::sm(80), 60s);
    ASSERT_TRUE(artifact.has_value()) << artifact.error().message << artifact.error().log;
    EXPECT_EQ(log.count(Event::Kind::Compiled), compiles);
    if (bytes.empty()) bytes = artifact->bytes.view();
    EXPECT_EQ(artifact->bytes.view(), bytes);
  }
}

TEST_F(Kinds, UnknownKindIsRejectedWithItsName) {
  EventLog log;
  Session session = open(log);
  const auto none = session.artifact(Unit::of_kind("tea", "leaves", "x"), Target::sm(80), 10s);
  ASSERT_FALSE(none.has_value());
  EXPECT_NE(none.error().message.find("tea"), std::string::npos);
}

}  // namespace
}  // namespace kiln::test
