// A header of CCCL's is edited after its algorithms were compiled and their headers precompiled. The library and NVRTC
// would notice neither; kiln's keys cover every header that was read.
#include <kiln/cccl.hpp>
#include <kiln/session.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "support/cccl_packages.hpp"
#include "support/cccl_tree.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/temporary_directory.hpp"
#include "support/toolkit.hpp"

namespace kiln::test {
namespace {

class CcclStale : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    if (cccl_package().empty()) GTEST_SKIP() << "no cuda-cccl (tools/setup.sh)";
  }

  // What a new session on the same cache gives, and what it was told meanwhile. Three specs are worth precompiled
  // headers.
  struct Got {
    explicit Got(SessionOptions options) {
      options.on_event = log.callback();
      Session session = Session::open(options).value();  // ended here, for its workers are in the way of the next one's
      const Units units{cccl::reduce<std::int32_t>(), cccl::reduce<double>(), cccl::reduce<float>()};
      session.request(units, Target::sm(80));
      for (const Unit& unit : units) artifacts.push_back(session.artifact(unit, Target::sm(80)));
      // An artifact may be there before the account of it.
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
    options.settings = {{"cache.dir", folder_.path("cache")},
                        {"cccl", folder_.path("site")},
                        {"nvrtc", toolkit_nvrtc()},
                        {"pch", "on"}};
    options.locked = {"cache.dir", "cccl", "nvrtc", "pch"};
    return Got(options);
  }

  void write(const std::string& header, const std::string& text) const {
    spit(header, text);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // until its time can be trusted
  }

  TemporaryDirectory folder_;
};

TEST_F(CcclStale, EditedHeaderChangesTheKeyAndDropsWhatWasPrecompiledOfIt) {
  const CcclTree tree(cccl_package(), folder_.path("site"), CcclTree::Headers::Copied);
  const std::string header = tree.header("cub/util_type.cuh");
  const std::string text = slurp(header);
  ASSERT_FALSE(text.empty());
  const Got first = get();
  ASSERT_TRUE(first.artifacts[0].ok()) << first.artifacts[0].error().message << first.artifacts[0].error().log;
  EXPECT_EQ(first.status.compiled, 3U);
  EXPECT_EQ(first.log.count(Event::Kind::HeadersKept), 1U);

  // Had anything old been used this would compile.
  write(header, "#error somebody has edited this\n" + text);
  const Got refused = get();
  for (const auto& artifact : refused.artifacts) {
    ASSERT_FALSE(artifact.ok());
    EXPECT_EQ(artifact.error().code, Code::CompileFailed) << artifact.error().message;
    EXPECT_NE(artifact.error().log.find("somebody has edited this"), std::string::npos) << artifact.error().log;
  }
  ASSERT_EQ(refused.log.count(Event::Kind::HeadersDropped), 1U);
  EXPECT_NE(refused.log.of(Event::Kind::HeadersDropped)[0].message.find("util_type.cuh"), std::string::npos);

  write(header, text + "// edited\n");
  const Got edited = get();
  ASSERT_TRUE(edited.artifacts[0].ok()) << edited.artifacts[0].error().message;
  EXPECT_EQ(edited.status.compiled, 3U);
  EXPECT_NE(edited.keys(Event::Kind::Published), first.keys(Event::Kind::Published));

  write(header, text);
  const Got restored = get();
  EXPECT_EQ(restored.status.compiled, 0U);
  EXPECT_EQ(restored.status.found, 3U);
  EXPECT_TRUE(restored.artifacts[0].ok() && restored.artifacts[0]->bytes == first.artifacts[0]->bytes);
}

}  // namespace
}  // namespace kiln::test
