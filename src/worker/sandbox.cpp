// SPDX-License-Identifier: Apache-2.0
#include "worker/sandbox.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>

#include "backends/factory/backend_table.hpp"
#include "base/files/files.hpp"
#include "base/process/environment.hpp"
#include "base/text.hpp"
#include "worker/sandbox_filter.hpp"

namespace kiln {
namespace {

// Landlock's interface, which older kernel headers do not have. The numbers are the same on every architecture.
constexpr long kCreateRuleset = 444;
constexpr long kAddRule = 445;
constexpr long kRestrictSelf = 446;
constexpr unsigned kRulesetVersion = 1;
constexpr int kPathBeneath = 1;

struct RulesetAttributes {
  std::uint64_t handled_fs = 0;
  std::uint64_t handled_net = 0;
  std::uint64_t scoped = 0;
};

struct __attribute__((packed)) PathBeneathAttributes {
  std::uint64_t allowed = 0;
  std::int32_t parent = -1;
};

constexpr std::uint64_t kExecute = 1U << 0;
constexpr std::uint64_t kWriteFile = 1U << 1;
constexpr std::uint64_t kReadFile = 1U << 2;
constexpr std::uint64_t kReadDirectory = 1U << 3;
constexpr std::uint64_t kTruncate = 1U << 14;
constexpr std::uint64_t kDeviceControl = 1U << 15;
constexpr std::uint64_t kOfFiles = kExecute | kWriteFile | kReadFile | kTruncate | kDeviceControl;

RulesetAttributes everything(int abi) {
  RulesetAttributes all;
  all.handled_fs = (std::uint64_t{1} << 13) - 1;
  if (abi >= 2) all.handled_fs |= std::uint64_t{1} << 13;  // links and renames between directories
  if (abi >= 3) all.handled_fs |= kTruncate;
  if (abi >= 5) all.handled_fs |= kDeviceControl;
  if (abi >= 4) all.handled_net = 3;  // TCP: bind, connect
  if (abi >= 6) all.scoped = 3;       // abstract Unix sockets, signals
  return all;
}

int landlock_abi() {
  const long abi = syscall(kCreateRuleset, nullptr, 0, kRulesetVersion);
  return abi > 0 ? static_cast<int>(abi) : 0;
}

class Ruleset {
 public:
  explicit Ruleset(int abi) : handled_(everything(abi)) {
    fd_ = Fd(static_cast<int>(syscall(kCreateRuleset, &handled_, sizeof handled_, 0)));
  }
  // A missing path needs no rule.
  void allow(const std::string& path, std::uint64_t rights) {
    const Fd opened(open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat status;
    if (!opened || fstat(opened.get(), &status) != 0) return;
    if (!S_ISDIR(status.st_mode)) rights &= kOfFiles;
    const PathBeneathAttributes rule{rights & handled_.handled_fs, opened.get()};
    (void)syscall(kAddRule, fd_.get(), kPathBeneath, &rule, 0);
  }
  std::uint64_t all() const { return handled_.handled_fs; }
  bool enforce() const { return fd_ && syscall(kRestrictSelf, fd_.get(), 0) == 0; }

 private:
  const RulesetAttributes handled_;
  Fd fd_;
};

// Programs and libraries. /usr and the like contain no private files of users.
constexpr const char* kPrograms[] = {"/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/nix/store", "/gnu/store"};
// Only the files of /etc that the loader and the C library read. In /proc, the kernel shows a process in a Landlock
// domain only public information about processes outside of it.
constexpr const char* kSystem[] = {"/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/localtime", "/etc/OpenCL",
                                   "/etc/passwd",      "/etc/nsswitch.conf", "/proc",          "/sys"};
constexpr const char* kDevices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};

// OpenCL drivers can also be installed in /opt, and they use device files.
void allow_drivers(Ruleset& rules) {
  rules.allow("/opt", kReadFile | kReadDirectory | kExecute);
  const Fd devices(open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!devices) return;
  for (const std::string& name : list_directory(devices.get(), "/dev")) {
    const bool is_gpu = name.starts_with("nvidia") || name == "dri" || name == "kfd";
    if (is_gpu) rules.allow("/dev/" + name, kReadFile | kReadDirectory | kWriteFile | kDeviceControl);
  }
}

int restrict_files(const SandboxPlan& plan) {
  const int abi = landlock_abi();
  if (abi == 0) return 0;
  Ruleset rules(abi);
  const bool runs = plan.mode == SandboxPlan::Mode::MayRunPrograms;
  const std::uint64_t read = kReadFile | kReadDirectory;
  for (const char* path : kPrograms) rules.allow(path, read | (runs ? kExecute : 0));
  for (const char* path : kSystem) rules.allow(path, read);
  for (const char* path : kDevices) rules.allow(path, kReadFile | kWriteFile);
  const std::string library_path = environment_variable("LD_LIBRARY_PATH").value_or("");
  for (const std::string_view path : split(library_path, ':')) {
    if (!path.empty()) rules.allow(std::string(path), read);
  }
  for (const std::string& path : plan.readable) rules.allow(path, read);
  for (const std::string& path : plan.writable) rules.allow(path, rules.all() & ~kDeviceControl);
  if (runs) allow_drivers(rules);
  return rules.enforce() ? abi : 0;
}

// Drops all capabilities of a worker that runs as root except the one to read files that root can read. Because of
// no_new_privs, programs that it starts cannot regain the others.
void drop_capabilities() {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  if (syscall(SYS_capget, &head, sets) != 0) return;
  for (__user_cap_data_struct& set : sets) {
    const std::uint32_t kept = &set == sets ? 1U << CAP_DAC_READ_SEARCH : 0;
    set.permitted &= kept;
    set.effective &= kept;
    set.inheritable = 0;
  }
  head = {_LINUX_CAPABILITY_VERSION_3, 0};
  (void)syscall(SYS_capset, &head, sets);
}

std::string real_directory_of(const std::string& file) {
  char* const real = realpath(file.c_str(), nullptr);
  if (real == nullptr) return parent_path(file);
  const std::string path = real;
  free(real);
  return parent_path(path);
}

// Adds the paths that options name: after `=`, as the next word, or directly after the option.
void add_named_paths(std::vector<std::string>& places, std::span<const std::string> words) {
  static constexpr std::string_view kNames[] = {"--include-path", "--pre-include", "-include", "-isystem", "-I"};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const auto is_name = [&](std::string_view name) { return word.starts_with(name); };
    const auto* const name = std::find_if(std::begin(kNames), std::end(kNames), is_name);
    if (name == std::end(kNames)) continue;
    std::string_view path = word.substr(name->size());
    if (path.starts_with('=')) path.remove_prefix(1);
    if (!path.empty()) places.emplace_back(path);
    if (path.empty() && i + 1 < words.size()) places.push_back(words[i + 1]);
  }
}

}  // namespace

std::vector<std::string> input_places(const Recipe& recipe) {
  std::vector<std::string> places;
  if (recipe.working_directory != "/") places.push_back(recipe.working_directory);
  for (const IncludeRoot& root : recipe.path_roots().roots) places.push_back(root.path);
  add_named_paths(places, recipe.unit.options());
  for (const auto& [name, value] : recipe.compiler.environment) {
    if (!name.ends_with("_FLAGS")) continue;
    std::vector<std::string> words;
    for (const std::string_view word : split(value, ' ')) {
      if (!word.empty()) words.emplace_back(word);
    }
    add_named_paths(places, words);
  }
  return places;
}

SandboxPlan sandbox_plan(const Recipe& recipe, const SandboxSettings& settings, bool is_unseen) {
  SandboxPlan plan;
  if (!settings.enabled) return plan;
  const std::string& kind = recipe.unit.kind();
  const BackendFactory* const backend = find_backend(kind);
  const bool runs_programs = backend != nullptr ? backend->runs_programs() : kind == "command";
  plan.mode = runs_programs ? SandboxPlan::Mode::MayRunPrograms : SandboxPlan::Mode::NoPrograms;
  plan.readable = settings.readable;
  std::vector<std::string> libraries = recipe.compiler.libraries;
  libraries.push_back(recipe.compiler.path);
  for (const std::string& library : libraries) {
    if (!library.starts_with('/')) continue;
    for (const std::string& directory : {parent_path(library), real_directory_of(library)}) {
      if (directory != "/") plan.readable.push_back(directory);
    }
  }
  // The compiler's directories, independent of the unit. Those of NVRTC are not listed: only some of its units use
  // them, and one worker serves all of its units.
  if (kind != "cuda") {
    for (const IncludeRoot& root : recipe.compiler.roots) plan.readable.push_back(root.path);
  }
  plan.reads_roots = is_unseen || runs_programs;
  if (plan.reads_roots) {
    for (std::string& place : input_places(recipe)) plan.readable.push_back(std::move(place));
  }
  std::sort(plan.readable.begin(), plan.readable.end());
  plan.readable.erase(std::unique(plan.readable.begin(), plan.readable.end()), plan.readable.end());
  return plan;
}

std::string SandboxParts::text() const {
  std::string landlock = "Landlock (ABI " + std::to_string(landlock_abi) + ")";
  if (seccomp && landlock_abi > 0) return "seccomp and " + landlock;
  if (landlock_abi > 0) return landlock;
  return seccomp ? "seccomp" : "none";
}

SandboxParts available_sandbox() { return {has_system_call_filter(), landlock_abi()}; }

SandboxParts enter_sandbox(const SandboxPlan& plan) {
  SandboxParts parts;
  if (plan.mode == SandboxPlan::Mode::Off || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return parts;
  parts.landlock_abi = restrict_files(plan);
  drop_capabilities();
  parts.seccomp = filter_system_calls(plan.mode == SandboxPlan::Mode::MayRunPrograms);
  return parts;
}

}  // namespace kiln
