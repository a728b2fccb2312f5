// SPDX-License-Identifier: Apache-2.0
// The CCCL algorithms that the modules of a program require overlap and are compiled once.
#include <kiln/cccl.hpp>
#include <kiln/session.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "support/fixtures/cccl_packages.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/toolkit.hpp"
#include "support/fixtures/workload_requirements.hpp"
#include "support/processes/eventually.hpp"

namespace kiln::test {
namespace {

class CcclNeeds : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    if (cccl_package().empty()) GTEST_SKIP() << "no cuda-cccl (tools/setup.sh)";
  }
  Session session() {
    SessionOptions options;
    options.settings = {{"cache.dir", directory_.path("cache")},
                        {"cccl", cccl_package()},
                        {"nvrtc", toolkit_nvrtc()},
                        {"pch.mode", "on"}};
    options.locked = {"cache.dir", "cccl", "nvrtc", "pch.mode"};
    options.on_event = log_.callback();
    return Session::open(options).value();
  }
  // Requests the units of a module and waits until they are ready.
  static SessionStatus request(Session& session, const std::string& module) {
    const Units units = workload_requirement(module).units();
    session.request(units, Target::sm(80));
    for (const Unit& unit : units) {
      const auto artifact = session.artifact(unit, Target::sm(80));
      EXPECT_TRUE(artifact.has_value()) << artifact.error().message << "\n" << artifact.error().log;
    }
    // An artifact can be available before the status counts it.
    EXPECT_TRUE(eventually([&] { return session.status().pending == 0; }));
    return session.status();
  }

  TemporaryDirectory directory_;
  EventLog log_;
};

TEST_F(CcclNeeds, ModulesCompileOnlyAlgorithmsNotRequestedBefore) {
  const auto start = std::chrono::steady_clock::now();
  {
    Session one = session();
    EXPECT_EQ(request(one, "sjoin").compiled, 12U);
    const SessionStatus overlay = request(one, "overlay");
    EXPECT_EQ(overlay.compiled, 14U) << "it shares four of its six algorithms with sjoin";
    EXPECT_EQ(overlay.submitted, 14U);
    const SessionStatus dissolve = request(one, "dissolve");
    EXPECT_EQ(dissolve.compiled, 14U);
    EXPECT_EQ(dissolve.submitted, 14U);
    EXPECT_EQ(dissolve.failed + dissolve.pending, 0U);
  }
  EXPECT_EQ(log_.count(Event::Kind::Compiled), 14U);
  const double cold = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  Session two = session();
  for (const char* module : {"sjoin", "overlay", "dissolve"}) request(two, module);
  EXPECT_EQ(two.status().compiled, 0U);
  EXPECT_EQ(two.status().cached, 14U);
  std::printf(
      "figure: sjoin's 12, overlay's 6 and dissolve's 3 specs of CCCL: compiles=12+2+0 seconds=%.1f; a second "
      "session found all %zu in %.0f ms\n",
      cold, two.status().cached, two.status().wall_ms);
}

}  // namespace
}  // namespace kiln::test
