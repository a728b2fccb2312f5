// SPDX-License-Identifier: Apache-2.0
#include "install_headers.hpp"

#include "base/files/files.hpp"
#include "base/process/dynamic_library.hpp"
#include "worker/worker_protocol.hpp"

namespace kiln {
namespace {

// NVRTC's function since 13.3, declared from its documentation. With flags 0 it waits for its own lock and writes the
// files unless the directory has them. `reason` points to a text of the library.
using InstallBundledHeaders = int(const char* directory, unsigned flags, const char** reason);
using ErrorString = const char*(int);

int fail(const std::string& reason) {
  (void)write_all(kWorkerChannel, reason, "the reason");
  return 1;
}

}  // namespace

int install_headers(const std::string& library, const std::string& directory, const SandboxSettings& settings) {
  const Recipe recipe{Unit::cuda("headers", ""), Target::sm(80), {"nvrtc", {}, library, {}, {}, {}, {}}, "/"};
  SandboxPlan plan = sandbox_plan(recipe, settings, false);
  plan.writable.push_back(directory);
  (void)enter_sandbox(plan);
  const auto opened = DynamicLibrary::open(library);
  if (!opened) return fail(opened.error().message);
  InstallBundledHeaders* install = nullptr;
  ErrorString* error_string = nullptr;
  if (!opened->bind(install, "nvrtcInstallBundledHeaders") || !opened->bind(error_string, "nvrtcGetErrorString"))
    return fail("this library has no bundled headers");
  const char* reason = nullptr;
  const int result = install(directory.c_str(), 0, &reason);
  if (result == 0) return 0;
  return fail(std::string(error_string(result)) + (reason != nullptr ? std::string(": ") + reason : ""));
}

}  // namespace kiln
