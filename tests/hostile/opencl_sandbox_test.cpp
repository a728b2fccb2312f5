// SPDX-License-Identifier: Apache-2.0
// PoCL runs a linker. It must work in the sandbox of a compiler that can run programs, and that must still be a
// sandbox.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "backends/opencl/opencl_compiler.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/child.hpp"
#include "worker/sandbox.hpp"

namespace kiln::test {
namespace {

// Enters the sandbox in a child process as a worker does, with a private temporary directory.
SandboxParts enter_for_opencl(const std::string& temporary) {
  setenv("TMPDIR", temporary.c_str(), 1);
  setenv("POCL_CACHE_DIR", temporary.c_str(), 1);
  const Recipe recipe{Unit::opencl("k.cl", ""), {}, {}, temporary};
  SandboxPlan plan = sandbox_plan(recipe, {}, false);
  plan.writable.push_back(temporary);
  return enter_sandbox(plan);
}

TEST(HostileWorkersOpenCl, PoclCompilesInItsSandbox) {
  const TemporaryDirectory own;
  const std::string said = own.path("said");
  const int code = run_in_child([&] {
    const SandboxParts parts = enter_for_opencl(own.path());
    OpenClCompiler compiler;
    const auto device = compiler.device();
    if (!device) return 77;
    const Unit unit = Unit::opencl("k.cl", "__kernel void k(__global int* p) { p[get_global_id(0)] = 3; }");
    const auto compiled = compiler.compile(recipe_for(compiler, unit, device->target), {});
    write_text(said, compiled ? parts.text() : compiled.error().message + "\n" + compiled.error().log);
    return compiled && compiled->artifact.bytes.size() > 0 ? 0 : 1;
  });
  if (code == 77) GTEST_SKIP() << "no OpenCL device";
  EXPECT_EQ(code, 0) << read_text(said);
  std::printf("sandbox: %s\n", read_text(said).c_str());
}

TEST(HostileWorkersOpenCl, ChildProgramsAreConfinedToo) {
  const SandboxParts available = available_sandbox();
  if (!available.seccomp || available.landlock_abi == 0) GTEST_SKIP() << "this kernel has " << available.text();
  const TemporaryDirectory own;
  const TemporaryDirectory home;
  write_text(home.path("secret"), "a private key");
  const auto shell = [&](const std::string& command) {
    return run_in_child([&] {
      (void)enter_for_opencl(own.path());
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      return 99;
    });
  };
  EXPECT_EQ(shell("/bin/true"), 0);
  EXPECT_EQ(shell("echo x > " + own.path("x")), 0);
  EXPECT_NE(shell("cat " + home.path("secret") + " 2>/dev/null"), 0);
  EXPECT_NE(shell("(echo x > " + home.path("secret") + ") 2>/dev/null"), 0);
  EXPECT_NE(shell("kill -0 " + std::to_string(getpid()) + " 2>/dev/null"), 0);
  EXPECT_NE(shell("mount -t tmpfs none " + own.path() + " 2>/dev/null"), 0);
  EXPECT_EQ(run_in_child([&] {
              (void)enter_for_opencl(own.path());
              return socket(AF_INET, SOCK_STREAM, 0) < 0 ? 0 : 1;
            }),
            0);
  EXPECT_EQ(read_text(home.path("secret")), "a private key");
}

}  // namespace
}  // namespace kiln::test
