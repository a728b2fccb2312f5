// SPDX-License-Identifier: Apache-2.0
#include "cache/activity_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <optional>
#include <string>

#include "base/files/files.hpp"
#include "base/files/owned_file.hpp"
#include "base/process/system_info.hpp"

namespace kiln {
namespace {

constexpr const char* kActivityDirectory = "activity";
constexpr std::chrono::minutes kFlushInterval{1};

std::uint32_t day_of(const Clock& clock) {
  return static_cast<std::uint32_t>(std::max<std::int64_t>(clock.wall() / std::chrono::hours(24), 0));
}

std::string name_of(std::uint32_t day) { return std::string(kActivityDirectory) + '/' + std::to_string(day); }

// Returns the day in the name of a file, or nothing if the file is not of this log.
std::optional<std::uint32_t> day_in(const std::string& name) {
  std::uint32_t day = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), day);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return day;
}

void remove_old(int version, std::uint32_t today) {
  for (const std::string& name : list_directory(version, kActivityDirectory)) {
    const auto day = day_in(name);
    if (day && *day < today && today - *day >= ActivityLog::kDays) (void)unlinkat(version, name_of(*day).c_str(), 0);
  }
}

}  // namespace

ActivityLog::ActivityLog(CacheDirectory& directory)
    : directory_(directory), process_(getpid()), day_(day_of(directory.clock())),
      flushed_at_(directory.clock().steady().count()) {}

void ActivityLog::count_hit(Origin origin, double saved_ms) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  flush_past_day();
  if (origin == Origin::Bundle) bundle_.fetch_add(1, kRelaxed);
  if (origin == Origin::Disk) disk_.fetch_add(1, kRelaxed);
  if (origin == Origin::Remote) remote_.fetch_add(1, kRelaxed);
  // An entry of another host can state any cost.
  constexpr double kMaxSaved = 86'400'000;
  if (saved_ms > 0) saved_us_.fetch_add(static_cast<std::uint64_t>(std::min(saved_ms, kMaxSaved) * 1000), kRelaxed);
  flush_if_due();
}

void ActivityLog::count_compile(bool succeeded) {
  flush_past_day();
  (succeeded ? compiled_ : failed_).fetch_add(1, std::memory_order_relaxed);
  flush_if_due();
}

void ActivityLog::flush_past_day() {
  if (day_.load(std::memory_order_relaxed) != day_of(directory_.clock())) flush();
}

void ActivityLog::flush_if_due() {
  const std::int64_t now = directory_.clock().steady().count();
  std::int64_t last = flushed_at_.load(std::memory_order_relaxed);
  if (now - last < std::chrono::nanoseconds(kFlushInterval).count()) return;
  if (flushed_at_.compare_exchange_strong(last, now)) flush();
}

Activity ActivityLog::take() {
  Activity taken;
  taken.bundle = bundle_.exchange(0);
  taken.disk = disk_.exchange(0);
  taken.remote = remote_.exchange(0);
  taken.compiled = compiled_.exchange(0);
  taken.failed = failed_.exchange(0);
  taken.saved_ms = saved_us_.exchange(0) / 1000;
  return taken;
}

void ActivityLog::flush() {
  // Counts of the new day exist only after this function.
  const std::uint32_t day = day_.exchange(day_of(directory_.clock()));
  Activity activity = take();
  // A forked child has the counts of its parent, which records them itself.
  if (activity.hits() + activity.misses() == 0 || getpid() != process_) return;
  activity.day = day;
  activity.program = program_name();
  append(activity);
}

void ActivityLog::append(const Activity& activity) {
  const auto opened = directory_.open();
  if (!opened || *opened == nullptr || !(*opened)->writable) return;
  const int version = (*opened)->version.get();
  if (is_network_filesystem(version)) return;  // appends of several hosts would overwrite each other
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const std::string name = name_of(activity.day);
  Fd fd(openat(version, name.c_str(), kFlags, 0644));
  if (!fd && errno == ENOENT && (mkdirat(version, kActivityDirectory, 0755) == 0 || errno == EEXIST)) {
    fd = Fd(openat(version, name.c_str(), kFlags, 0644));
  }
  struct stat status;
  if (!fd || fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) || !is_owned(status, (*opened)->owners)) return;
  if (static_cast<std::uint64_t>(status.st_size) + kActivityRecord > kMaxBytes) return;
  if (status.st_size == 0) remove_old(version, activity.day);
  (void)write_all(fd.get(), encode_activity(activity), name);  // for reports only
}

std::vector<Activity> ActivityLog::read() {
  std::vector<Activity> records;
  const auto opened = directory_.open();
  if (!opened || *opened == nullptr) return records;
  const std::uint32_t today = day_of(directory_.clock());
  const std::uint32_t first = today < kDays ? 0 : today - kDays + 1;
  for (std::uint32_t day = first; day <= today; ++day) {
    const std::string name = name_of(day);
    const Fd fd(openat((*opened)->version.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status;
    if (!fd || fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) || !is_owned(status, (*opened)->owners)) {
      continue;
    }
    const auto bytes =
        read_all(fd.get(), std::min<std::uint64_t>(static_cast<std::uint64_t>(status.st_size), kMaxBytes), name);
    if (!bytes) continue;
    for (Activity& each : decode_activities({bytes->data(), bytes->size()})) {
      if (each.day == day) records.push_back(std::move(each));
    }
  }
  return sum_activities(records);
}

}  // namespace kiln
