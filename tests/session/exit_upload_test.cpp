// SPDX-License-Identifier: Apache-2.0
// A program can exit right after its first compile without closing its session: the result still reaches the other
// hosts. Uses a real nginx with TLS, whose library has exit handlers of its own; NVRTC really compiles.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/process/process.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/servers/nginx.hpp"
#include "support/servers/test_ca.hpp"
#include "trust/keys.hpp"

namespace kiln::test {
namespace {

TEST(ExitWithUploads, UploadsCompiledCodeBeforeProcessExits) {
  if (!Nginx::available()) GTEST_SKIP() << "nginx is not installed (tools/setup.sh)";
  Nginx::Options wants;
  wants.tls = true;
  const Nginx nginx(wants);
  for (const char* how : {"return", "exit", "thread"}) {
    const TemporaryDirectory directory;
    write_text(directory.path("slow.h"), "// quick\n");
    ASSERT_TRUE(SecretKey::generate().write(directory.path("ci.key")).has_value());
    std::vector<std::string> environment = current_environment();
    for (const std::string& setting :
         {"CACHE_DIR=" + directory.path("cache"), std::string("REMOTE_BUDGET=10000"), "REMOTE=" + nginx.url(),
          "REMOTE_CA=" + TestCa::shared().ca(), "REMOTE_SIGNING_KEY=" + directory.path("ci.key"),
          std::string("REMOTE_NAMESPACE=acme/vision")}) {
      environment.push_back("KILN_" + setting);
    }
    const std::size_t before = files_below(nginx.data() + "/cas").size();
    Process program =
        Process::spawn({{KILN_EXIT_MAIN, "cuda", how, directory.path(), "compiled"}, environment, {}}).value();
    const auto exit = program.wait(std::chrono::seconds(60));
    ASSERT_TRUE(exit.has_value()) << how << ": it does not exit";
    EXPECT_TRUE(exit->succeeded()) << how << ": code " << exit->code << ", signal " << exit->signal;
    EXPECT_GT(files_below(nginx.data() + "/cas").size(), before) << how;
  }
}

}  // namespace
}  // namespace kiln::test
