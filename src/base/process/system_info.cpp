// SPDX-License-Identifier: Apache-2.0
#include "base/process/system_info.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <limits>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/files/files.hpp"
#include "base/hash.hpp"
#include "base/process/environment.hpp"
#include "base/text.hpp"

namespace kiln {
namespace {

constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;  // cgroup version 1 uses a number near 2^63 for "no limit"
constexpr std::size_t kMaxTextLength = 64 << 10;            // far more than the kernel writes into any of these files

std::optional<std::uint64_t> number_in(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t");
  if (start == std::string_view::npos) return std::nullopt;
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data() + start, text.data() + text.size(), value);
  if (read.ec != std::errc()) return std::nullopt;
  return value;
}

// Reads a kernel file. Kernel files report size 0, so `read_file` cannot read them.
std::optional<std::string> text_of(const std::string& path, std::size_t longest = kMaxTextLength) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::string text;
  char part[4096];
  while (text.size() < longest) {
    const ssize_t size = read(fd.get(), part, sizeof part);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return std::nullopt;
    if (size == 0) break;
    text.append(part, static_cast<std::size_t>(size));
  }
  return text;
}

std::optional<std::uint64_t> number_of(const std::string& path) {
  const auto text = text_of(path);
  return text ? number_in(*text) : std::nullopt;
}

// Returns the number after a name at the start of a line, as in /proc/meminfo and memory.stat.
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    if (at == 0 || text[at - 1] == '\n') return number_in(text.substr(at + name.size()));
  }
  return std::nullopt;
}

enum class Hierarchy { PerController, Unified };  // cgroup version 1 and version 2

struct Group {
  std::string directory;
  Hierarchy hierarchy;
};

// Adds the directory of a group below its mount point and its visible parents. A container without a cgroup namespace
// sees its path on the host, but its own group is mounted at the location of the host's root. A process that was moved
// out of its namespace sees a path with `..` in it.
void add_with_those_above(const std::string& mount, std::string path, Hierarchy hierarchy, std::vector<Group>& out) {
  const bool visible = path.find("/..") == std::string::npos && is_directory(mount + path);
  if (!visible) path.clear();
  while (path.size() > 1) {
    out.push_back({mount + path, hierarchy});
    path.resize(path.rfind('/'));
  }
  out.push_back({mount, hierarchy});
}

// Returns the groups whose limits apply to this process, from lines such as `4:cpu,cpuacct:/path`, or `0::/path` for
// the unified hierarchy. A hybrid machine has both, with the controller in one of them.
std::vector<Group> groups_of_this_process(const SystemFileRoot& files, std::string_view controller) {
  const std::string text = text_of(files.root + "/proc/self/cgroup").value_or("");
  std::vector<Group> groups;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos || line.substr(second + 1, 1) != "/") continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::vector<std::string_view> each = split(controllers, ',');
    const std::string path(line.substr(second + 1));
    const std::string mounts = files.root + "/sys/fs/cgroup";
    if (controllers.empty()) {
      add_with_those_above(mounts, path, Hierarchy::Unified, groups);
    } else if (std::find(each.begin(), each.end(), controller) != each.end()) {
      // Several controllers in one hierarchy are mounted under the full list, usually with a link for each.
      const std::string alone = join_path(mounts, controller);
      const std::string mount = is_directory(alone) ? alone : join_path(mounts, controllers);
      add_with_those_above(mount, path, Hierarchy::PerController, groups);
    }
  }
  return groups;
}

// Returns a number of /proc/meminfo in bytes.
std::uint64_t memory_of_the_machine(const SystemFileRoot& files, std::string_view name) {
  const auto text = text_of(files.root + "/proc/meminfo");
  const auto kilobytes = text ? number_after(*text, name) : std::nullopt;
  return kilobytes && *kilobytes <= kUnknown / 1024 ? *kilobytes * 1024 : kUnknown;
}

std::uint64_t limit_of(const Group& group) {
  const bool unified = group.hierarchy == Hierarchy::Unified;
  const auto number = [&](const char* name) { return number_of(join_path(group.directory, name)).value_or(kUnknown); };
  const std::uint64_t limit = number(unified ? "memory.max" : "memory.limit_in_bytes");
  // Above `high` a process is not killed but throttled until it hardly runs.
  return unified ? std::min(limit, number("memory.high")) : limit;
}

// Returns the memory available below the group's limit. Inactive file pages count as used but are dropped under memory
// pressure, so they count as available here. After a large build they are most of a group's usage.
std::uint64_t free_in(const Group& group) {
  const bool unified = group.hierarchy == Hierarchy::Unified;
  const std::uint64_t limit = limit_of(group);
  const auto used = number_of(join_path(group.directory, unified ? "memory.current" : "memory.usage_in_bytes"));
  if (limit >= kNoLimit || !used) return kUnknown;
  const auto statistics = text_of(join_path(group.directory, "memory.stat"));
  const char* const name = unified ? "inactive_file " : "total_inactive_file ";
  const std::uint64_t droppable = statistics ? number_after(*statistics, name).value_or(0) : 0;
  const std::uint64_t kept = *used - std::min(droppable, *used);
  return limit - std::min(limit, kept);
}

struct Share {
  std::uint64_t quota = 0;  // microseconds of CPU time in each period
  std::uint64_t period = 0;
};

// Returns nothing for `max 100000` and a quota of -1, which mean unlimited.
std::optional<Share> share_of(const Group& group) {
  if (group.hierarchy == Hierarchy::Unified) {
    const auto text = text_of(join_path(group.directory, "cpu.max"));
    const std::size_t space = text ? text->find(' ') : std::string::npos;
    if (space == std::string::npos) return std::nullopt;
    const auto quota = number_in(*text);
    const auto period = number_in(std::string_view(*text).substr(space));
    return quota && period ? std::optional<Share>({*quota, *period}) : std::nullopt;
  }
  const auto quota = number_of(join_path(group.directory, "cpu.cfs_quota_us"));
  const auto period = quota ? number_of(join_path(group.directory, "cpu.cfs_period_us")) : std::nullopt;
  return period ? std::optional<Share>({*quota, *period}) : std::nullopt;
}

// Caches the result for a second: every kernel request needs the number of cores, and reading the files takes 16 µs.
unsigned remembered_cores_of_group() {
  static std::atomic<unsigned> cores{0};  // the maximum value means unlimited
  static std::atomic<std::int64_t> until{0};
  const std::int64_t now = system_clock().steady().count();
  if (now >= until.load(std::memory_order_acquire)) {
    cores.store(cgroup_cores().value_or(std::numeric_limits<unsigned>::max()), std::memory_order_relaxed);
    until.store(now + 1'000'000'000, std::memory_order_release);
  }
  return cores.load(std::memory_order_relaxed);
}

// Returns whether the root is an overlay, as in containers. An image build (BuildKit) gives no other sign of one.
bool is_root_overlay(const SystemFileRoot& files) {
  struct statfs status;
  if (files.filesystem) return *files.filesystem == OVERLAYFS_SUPER_MAGIC;
  return statfs((files.root + "/").c_str(), &status) == 0 &&
         static_cast<std::uint32_t>(status.f_type) == OVERLAYFS_SUPER_MAGIC;
}

constexpr const char* kLeftOut = "***";

bool is_named_like_a_secret(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* word : {"key", "token", "secret", "passw", "credential", "auth"}) {
    if (name.find(word) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

std::optional<unsigned> cgroup_cores(const SystemFileRoot& files) {
  std::optional<unsigned> minimum;
  for (const Group& group : groups_of_this_process(files, "cpu")) {
    const auto share = share_of(group);
    if (!share || share->period == 0) continue;
    const std::uint64_t cores = share->quota / share->period + (share->quota % share->period != 0 ? 1 : 0);
    const auto maximum = std::uint64_t{std::numeric_limits<unsigned>::max()};
    const auto here = static_cast<unsigned>(std::clamp(cores, std::uint64_t{1}, maximum));
    minimum = std::min(minimum.value_or(here), here);
  }
  return minimum;
}

unsigned usable_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return std::max(1U, std::min(static_cast<unsigned>(CPU_COUNT(&cores)), remembered_cores_of_group()));
}

std::uint64_t available_memory(const SystemFileRoot& files) {
  std::uint64_t minimum = memory_of_the_machine(files, "MemAvailable:");
  for (const Group& group : groups_of_this_process(files, "memory")) minimum = std::min(minimum, free_in(group));
  return minimum;
}

std::uint64_t memory_limit(const SystemFileRoot& files) {
  std::uint64_t minimum = memory_of_the_machine(files, "MemTotal:");
  for (const Group& group : groups_of_this_process(files, "memory")) minimum = std::min(minimum, limit_of(group));
  return minimum;
}

std::uint64_t peak_memory(const SystemFileRoot& files) {
  return number_after(text_of(files.root + "/proc/self/status").value_or(""), "VmHWM:").value_or(0) << 10;
}

std::string processor_model(const SystemFileRoot& files) {
  // On a machine with hundreds of CPUs the whole file takes milliseconds to read; the first CPU is in the first page.
  constexpr std::string_view kName = "model name";
  const std::string text = text_of(files.root + "/proc/cpuinfo", 4096).value_or("");
  if (const std::size_t line = text.find(kName); line != std::string::npos) {
    const std::size_t end = std::min(text.find('\n', line), text.size());
    const std::size_t start = text.find_first_not_of(" \t:", line + kName.size());
    if (start < end) return text.substr(start, end - start);
  }
  utsname kind{};
  return uname(&kind) == 0 ? kind.machine : "unknown";
}

bool in_container(const SystemFileRoot& files) {
  // podman and systemd-nspawn set the first variable; a pod has the second even if its cgroup path is hidden.
  for (const char* name : {"container", "KUBERNETES_SERVICE_HOST"}) {
    if (const auto value = environment_variable(name); value && !value->empty()) return true;
  }
  if (exists(files.root + "/.dockerenv") || exists(files.root + "/run/.containerenv") || is_root_overlay(files))
    return true;
  const auto groups = text_of(files.root + "/proc/1/cgroup");
  const auto named = [&](const char* name) { return groups && groups->find(name) != std::string::npos; };
  return named("docker") || named("kubepods") || named("containerd") || named("lxc");
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) == sizeof number) return number;
  return (static_cast<std::uint64_t>(getpid()) << 40U) ^ static_cast<std::uint64_t>(system_clock().steady().count());
}

std::string random_digits() {
  const std::uint64_t number = random_number();
  return hex_of({reinterpret_cast<const std::uint8_t*>(&number), sizeof number});
}

std::string host_identity(const SystemFileRoot& files) {
  if (in_container(files)) {
    if (auto boot = text_of(files.root + "/proc/sys/kernel/random/boot_id")) return std::move(*boot);
  }
  char name[256] = "";
  (void)gethostname(name, sizeof name - 1);
  return text_of(files.root + "/etc/machine-id").value_or("") + "\n" + name;
}

std::string format_command_line(const std::vector<std::string>& arguments) {
  std::string shown;
  bool secret = false;
  for (const std::string& argument : arguments) {
    if (!shown.empty()) shown += ' ';
    const std::size_t value = argument.find('=');
    const std::string name = argument.substr(0, value);
    const bool named = is_named_like_a_secret(name);
    if (secret && argument.rfind('-', 0) != 0) {
      shown += kLeftOut;
    } else if (named && value != std::string::npos) {
      shown += name + '=' + kLeftOut;
    } else {
      shown += argument;
    }
    secret = named && value == std::string::npos && argument.rfind('-', 0) == 0;
  }
  return shown;
}

std::string current_command_line(const SystemFileRoot& files) {
  const std::string text = text_of(files.root + "/proc/self/cmdline").value_or("");
  const std::vector<std::string_view> arguments = split(text, '\0');
  return format_command_line({arguments.begin(), arguments.end()});
}

std::string program_name(const SystemFileRoot& files) {
  const std::string text = text_of(files.root + "/proc/self/cmdline").value_or("");
  const std::vector<std::string_view> arguments = split(text, '\0');
  const auto base = [](std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); };
  if (arguments.empty()) return {};
  std::string name = base(arguments[0]);
  if (!name.starts_with("python")) return name;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i] == "-m" && i + 1 < arguments.size()) return "python -m " + std::string(arguments[i + 1]);
    if (arguments[i] == "-c") return "python -c";
    if (arguments[i] == "-W" || arguments[i] == "-X") {
      ++i;  // options with a value
    } else if (!arguments[i].starts_with('-')) {
      return base(arguments[i]);
    }
  }
  return name;
}

std::optional<ProcessSample> sample_process(pid_t process, const SystemFileRoot& files) {
  const auto text = text_of(files.root + "/proc/" + std::to_string(process) + "/stat");
  // The name, in parentheses, can contain blanks and parentheses.
  const std::size_t name = text ? text->rfind(')') : std::string::npos;
  if (name == std::string::npos || name + 2 > text->size()) return std::nullopt;
  // Field numbers of proc(5); the state is the third field.
  constexpr std::size_t kState = 3;
  constexpr std::size_t kParent = 4;
  constexpr std::size_t kUserTime = 14;
  constexpr std::size_t kSystemTime = 15;
  constexpr std::size_t kStart = 22;
  const std::vector<std::string_view> fields = split(std::string_view(*text).substr(name + 2), ' ');
  if (fields.size() <= kStart - kState || fields[0].size() != 1) return std::nullopt;
  const auto number = [&](std::size_t field) { return number_in(fields[field - kState]); };
  const auto parent = number(kParent);
  const auto user = number(kUserTime);
  const auto system = number(kSystemTime);
  const auto start = number(kStart);
  if (!parent || !user || !system || !start) return std::nullopt;
  return ProcessSample{fields[0][0], static_cast<pid_t>(*parent), *user + *system, *start};
}

std::optional<std::uint64_t> process_start_time(pid_t process, const SystemFileRoot& files) {
  const auto sample = sample_process(process, files);
  if (!sample || sample->state == 'Z' || sample->state == 'X') return std::nullopt;
  return sample->started;
}

bool is_process_stopped(pid_t process, const SystemFileRoot& files) {
  const auto sample = sample_process(process, files);
  return sample && sample->is_stopped();
}

std::uint64_t pid_namespace_id(const SystemFileRoot& files) {
  struct stat status;
  return stat((files.root + "/proc/self/ns/pid").c_str(), &status) == 0 ? status.st_ino : 0;
}

bool has_own_ipc_namespace(const SystemFileRoot& files) {
  constexpr std::string_view kHosts = "ipc:[4026531839]";  // PROC_IPC_INIT_INO of the kernel
  char link[64];
  const ssize_t size = readlink((files.root + "/proc/self/ns/ipc").c_str(), link, sizeof link);
  return size > 0 && std::string_view(link, static_cast<std::size_t>(size)) != kHosts;
}

std::string thread_name() {
  char name[32] = "";
  return pthread_getname_np(pthread_self(), name, sizeof name) == 0 ? name : "";
}

}  // namespace kiln
