// A program may end right after its first compile, without ever closing its session: what it compiled reaches the other
// hosts all the same. A real nginx with TLS, whose library has exit handlers of its own; NVRTC really compiles.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/process.hpp"
#include "support/files.hpp"
#include "support/nginx.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_ca.hpp"
#include "trust/keys.hpp"

namespace kiln::test {
namespace {

TEST(ExitWithUploads, SendsWhatWasCompiledBeforeTheProcessIsGone) {
  if (!Nginx::available()) GTEST_SKIP() << "nginx is not installed (tools/setup.sh)";
  Nginx::Options wants;
  wants.tls = true;
  const Nginx nginx(wants);
  for (const char* how : {"return", "exit", "thread"}) {
    const TemporaryDirectory folder;
    spit(folder.path("slow.h"), "// quick\n");
    ASSERT_TRUE(SecretKey::generate().write(folder.path("ci.key")).ok());
    std::vector<std::string> environment = current_environment();
    for (const std::string& setting :
         {"CACHE_DIR=" + folder.path("cache"), std::string("REMOTE_BUDGET=10000"), "REMOTE=" + nginx.url(),
          "REMOTE_CA=" + TestCa::shared().ca(), "REMOTE_SIGN=" + folder.path("ci.key"),
          std::string("REMOTE_NAMESPACE=acme/vision")}) {
      environment.push_back("KILN_" + setting);
    }
    const std::size_t before = files_below(nginx.data() + "/cas").size();
    Process program =
        Process::spawn({{KILN_EXIT_MAIN, "cuda", how, folder.path(), "compiled"}, environment, {}}).value();
    const auto exit = program.wait(std::chrono::seconds(60));
    ASSERT_TRUE(exit.has_value()) << how << ": it does not end";
    EXPECT_TRUE(exit->clean()) << how << ": code " << exit->code << ", signal " << exit->signal;
    EXPECT_GT(files_below(nginx.data() + "/cas").size(), before) << how;
  }
}

}  // namespace
}  // namespace kiln::test
