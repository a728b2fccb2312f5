#include "base/machine.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/files.hpp"

namespace kiln {
namespace {

constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

std::optional<std::uint64_t> number_in(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t");
  if (start == std::string_view::npos) return std::nullopt;
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data() + start, text.data() + text.size(), value);
  if (read.ec != std::errc()) return std::nullopt;
  return value;
}

// Files of the kernel say that they are empty, so `read_file` is not for them. What is asked for stands at the start.
std::optional<std::string> text_of(const char* path) {
  const Fd fd(open(path, O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  char start[4096];
  const ssize_t size = read(fd.get(), start, sizeof start);
  if (size <= 0) return std::nullopt;
  return std::string(start, static_cast<std::size_t>(size));
}

std::uint64_t free_on_the_machine() {
  constexpr std::string_view kName = "MemAvailable:";
  const auto text = text_of("/proc/meminfo");
  const std::size_t at = text ? text->find(kName) : std::string::npos;
  if (at == std::string::npos) return kUnknown;
  const auto kilobytes = number_in(std::string_view(*text).substr(at + kName.size()));
  return kilobytes ? *kilobytes * 1024 : kUnknown;
}

// Containers see their own group at the root of the file system.
std::uint64_t free_in_the_group() {
  const auto most = text_of("/sys/fs/cgroup/memory.max");
  const auto used = text_of("/sys/fs/cgroup/memory.current");
  const auto limit = most ? number_in(*most) : std::nullopt;
  const auto now = used ? number_in(*used) : std::nullopt;
  if (!limit || !now) return kUnknown;
  return *limit > *now ? *limit - *now : 0;
}

}  // namespace

unsigned usable_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return std::max(1U, static_cast<unsigned>(CPU_COUNT(&cores)));
}

std::string thread_name() {
  char name[32] = "";
  return pthread_getname_np(pthread_self(), name, sizeof name) == 0 ? name : "";
}

std::uint64_t available_memory() { return std::min(free_on_the_machine(), free_in_the_group()); }

}  // namespace kiln
