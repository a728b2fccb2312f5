// SPDX-License-Identifier: Apache-2.0
#include "engine/status_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/files/replace_file.hpp"
#include "base/process/system_info.hpp"

namespace kiln {
namespace {

constexpr std::string_view kSuffix = ".status";
constexpr std::size_t kMaxFiles = 512;
constexpr std::chrono::minutes kUnfinished{1};  // age of a stale temporary file; writing a status takes far less

Status check_file(const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return make_error(Code::Denied, "not a regular file; remove it");
  if (status.st_uid != geteuid() && status.st_uid != 0)
    return make_error(Code::Denied, "the file belongs to another user; remove it");
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return make_error(Code::Denied, "other users can write to the file; remove it or run chmod go-w on it");
  if (static_cast<std::uint64_t>(status.st_size) > ProcessStatus::kMaxBytes) {
    return make_error(Code::Denied, "the file is too large for a status; remove it");
  }
  return {};
}

// Returns no value if the file was removed in the meantime, as it is when its process ends.
Result<std::optional<ProcessStatus>> read_status(int directory, const std::string& name) {
  const Fd fd(openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd && errno == ENOENT) return std::optional<ProcessStatus>();
  if (!fd && errno == ELOOP) return make_error(Code::Denied, "the file is a symbolic link; remove it");
  if (!fd) return make_error(Code::Io, "cannot open the file: " + errno_message(errno));
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return make_error(Code::Io, "cannot stat the file: " + errno_message(errno));
  if (Status checked = check_file(status); !checked) return std::move(checked).error();
  const auto bytes = read_all(fd.get(), static_cast<std::size_t>(status.st_size), name);
  if (!bytes) return bytes.error();
  auto decoded = decode_status(bytes->view());
  if (!decoded) return std::move(decoded).error();
  return std::optional<ProcessStatus>(std::move(*decoded));
}

// Whether a process of another pid namespace is alive cannot be determined.
bool has_died(const ProcessStatus& status) {
  return status.name_space == pid_namespace_id() && process_start_time(status.pid) != status.started;
}

std::vector<std::string> status_files(int directory) {
  std::vector<std::string> names = list_directory(directory, ".");
  std::erase_if(names, [&](const std::string& name) {
    const bool unfinished = name.starts_with('.') && name.ends_with(kSuffix);
    if (unfinished) remove_stale_file(directory, name, kUnfinished);
    return unfinished || !name.ends_with(kSuffix);
  });
  if (names.size() > kMaxFiles) names.resize(kMaxFiles);
  return names;
}

}  // namespace

std::string status_directory(const std::string& setting) {
  if (setting == "off") return {};
  return setting.empty() ? host_local_path() + "/status" : setting;
}

std::vector<std::string> status_directories(const std::string& setting) {
  if (!setting.empty() && setting != "off") return {setting};
  std::vector<std::string> directories = {host_local_path() + "/status"};
  // A service has no XDG_RUNTIME_DIR although its user's shell does.
  std::string other = "/tmp/kiln-" + std::to_string(geteuid()) + "/status";
  if (other != directories.front()) directories.push_back(std::move(other));
  return directories;
}

Result<StatusListing> read_status_directory(const std::string& path) {
  StatusListing listing;
  // The default directories are in one that another user can have created first, as a link to anywhere.
  if (const auto defaults = status_directories({});
      std::find(defaults.begin(), defaults.end(), path) != defaults.end()) {
    const Result<Fd> parent = open_trusted_directory(parent_path(path));
    if (!parent && parent.error().code == Code::Unavailable) return listing;
    if (!parent) return parent.error();
  }
  const Result<Fd> directory = open_trusted_directory(path);
  if (!directory && directory.error().code == Code::Unavailable) return listing;
  if (!directory) return directory.error();
  for (const std::string& name : status_files(directory->get())) {
    auto status = read_status(directory->get(), name);
    if (!status) {
      listing.problems.push_back(join_path(path, name) + " is ignored: " + status.error().message);
    } else if (*status && has_died(**status)) {
      (void)unlinkat(directory->get(), name.c_str(), 0);
    } else if (*status) {
      listing.processes.push_back(std::move(**status));
    }
  }
  std::sort(listing.processes.begin(), listing.processes.end(),
            [](const ProcessStatus& a, const ProcessStatus& b) { return a.pid < b.pid; });
  return listing;
}

void remove_stale_status_files(int directory) {
  for (const std::string& name : status_files(directory)) {
    const auto status = read_status(directory, name);
    if (status && *status && has_died(**status)) (void)unlinkat(directory, name.c_str(), 0);
  }
}

}  // namespace kiln
