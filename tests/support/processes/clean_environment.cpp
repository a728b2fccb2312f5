// SPDX-License-Identifier: Apache-2.0
// Part of every test program. Before main, it removes the caller's settings from the environment, so that a test and
// each program that it starts behave the same in every shell. It also sets the umask, because kiln rejects files that a
// group can write, and gives the program its own host-local directory: the worker slots in it are shared by all
// processes of a user, so a test that runs at the same time would retire the idle workers of this one. Tests set what
// they need themselves.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

extern char** environ;

namespace kiln::test {
namespace {

// Variables that tell kiln and its libraries where to find compilers, packages and devices, and how these behave.
bool is_setting_of_caller(std::string_view name) {
  // Variables of the tests, set by CMake or on the command line.
  for (const std::string_view prefix : {"KILN_TEST_", "KILN_FLEET_", "KILN_FAKE_DRIVER_", "KILN_STRESS_"}) {
    if (name.starts_with(prefix)) return false;
  }
  for (const std::string_view prefix : {"KILN_", "NVRTC_", "CUDA_CACHE_", "POCL_"}) {
    if (name.starts_with(prefix)) return true;
  }
  for (const std::string_view known :
       {"VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "NO_COLOR"}) {
    if (name == known) return true;
  }
  return false;
}

// Marks the environment of a test program that another test program started, which is already clean. Not KILN_…:
// sessions report unknown settings with that prefix.
constexpr const char* kCleaned = "TEST_ENVIRONMENT_IS_CLEAN";

// The host-local directory of this program. The process that created it removes it when it exits; children that it
// forked do not.
class RuntimeDirectory {
 public:
  RuntimeDirectory() {
    std::error_code ignored;
    std::string pattern = (std::filesystem::temp_directory_path(ignored) / "kiln-test-run-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) return;
    path_ = pattern;
    setenv("XDG_RUNTIME_DIR", path_.c_str(), 1);
  }
  ~RuntimeDirectory() {
    std::error_code ignored;
    if (!path_.empty() && getpid() == owner_) std::filesystem::remove_all(path_, ignored);
  }
  RuntimeDirectory(const RuntimeDirectory&) = delete;
  RuntimeDirectory& operator=(const RuntimeDirectory&) = delete;

 private:
  std::string path_;
  pid_t owner_ = getpid();
};

bool clean() {
  if (std::getenv(kCleaned) != nullptr) return true;
  umask(022);
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view whole = *entry;
    const std::string_view name = whole.substr(0, whole.find('='));
    if (is_setting_of_caller(name)) names.emplace_back(name);
  }
  for (const std::string& name : names) unsetenv(name.c_str());
  static const RuntimeDirectory runtime_directory;
  setenv(kCleaned, "1", 1);
  return true;
}

[[maybe_unused]] const bool cleaned = clean();

}  // namespace
}  // namespace kiln::test
