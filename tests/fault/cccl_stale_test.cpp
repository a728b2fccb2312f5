// SPDX-License-Identifier: Apache-2.0
// A CCCL header is edited after its algorithms were compiled and their headers precompiled. The library and NVRTC would
// notice neither; kiln's keys cover every header that was read.
#include <kiln/cccl.hpp>
#include <kiln/session.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "support/fixtures/cccl_packages.hpp"
#include "support/fixtures/cccl_tree.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/toolkit.hpp"
#include "support/processes/eventually.hpp"

namespace kiln::test {
namespace {

class CcclStale : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    if (cccl_package().empty()) GTEST_SKIP() << "no cuda-cccl (tools/setup.sh)";
  }

  // The artifacts and events of a new session with the same cache. Three specs are enough for precompiled headers to be
  // created.
  struct Got {
    explicit Got(SessionOptions options) {
      options.on_event = log.callback();
      Session session = Session::open(options).value();  // closed here: its workers would block the next ones
      const Units units{cccl::reduce<std::int32_t>(), cccl::reduce<double>(), cccl::reduce<float>()};
      session.request(units, Target::sm(80));
      for (const Unit& unit : units) artifacts.push_back(session.artifact(unit, Target::sm(80)));
      // An artifact can be available before it is counted.
      EXPECT_TRUE(eventually([&] { return (status = session.status()).pending == 0; }));
    }
    std::string keys(Event::Kind kind) const {
      std::string all;
      for (const Event& event : log.of(kind)) all += event.key + "\n";
      return all;
    }

    EventLog log;
    std::vector<Result<Artifact>> artifacts;
    SessionStatus status;
  };
  Got get() const {
    SessionOptions options;
    options.settings = {{"cache.dir", directory_.path("cache")},
                        {"cccl", directory_.path("site")},
                        {"nvrtc", toolkit_nvrtc()},
                        {"pch.mode", "on"}};
    options.locked = {"cache.dir", "cccl", "nvrtc", "pch.mode"};
    return Got(options);
  }

  void write(const std::string& header, const std::string& text) const {
    write_text(header, text);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // until the file time can be trusted
  }

  TemporaryDirectory directory_;
};

TEST_F(CcclStale, EditedHeaderChangesKeyAndInvalidatesPch) {
  const CcclTree tree(cccl_package(), directory_.path("site"), CcclTree::Headers::Copied);
  const std::string header = tree.header("cub/util_type.cuh");
  const std::string text = read_text(header);
  ASSERT_FALSE(text.empty());
  const Got first = get();
  ASSERT_TRUE(first.artifacts[0].has_value()) << first.artifacts[0].error().message << first.artifacts[0].error().log;
  EXPECT_EQ(first.status.compiled, 3U);
  EXPECT_EQ(first.log.count(Event::Kind::PchCreated), 1U);

  // If any old file were used, this would compile.
  write(header, "#error this header was edited\n" + text);
  const Got rejected = get();
  for (const auto& artifact : rejected.artifacts) {
    ASSERT_FALSE(artifact.has_value());
    EXPECT_EQ(artifact.error().code, Code::CompileFailed) << artifact.error().message;
    EXPECT_NE(artifact.error().log.find("this header was edited"), std::string::npos) << artifact.error().log;
  }
  ASSERT_EQ(rejected.log.count(Event::Kind::PchDropped), 1U);
  EXPECT_NE(rejected.log.of(Event::Kind::PchDropped)[0].message.find("util_type.cuh"), std::string::npos);

  write(header, text + "// edited\n");
  const Got edited = get();
  ASSERT_TRUE(edited.artifacts[0].has_value()) << edited.artifacts[0].error().message;
  EXPECT_EQ(edited.status.compiled, 3U);
  EXPECT_NE(edited.keys(Event::Kind::Published), first.keys(Event::Kind::Published));

  write(header, text);
  const Got restored = get();
  EXPECT_EQ(restored.status.compiled, 0U);
  EXPECT_EQ(restored.status.cached, 3U);
  EXPECT_TRUE(restored.artifacts[0].has_value() && restored.artifacts[0]->bytes == first.artifacts[0]->bytes);
}

}  // namespace
}  // namespace kiln::test
