#include "session/status_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/machine.hpp"
#include "base/replace_file.hpp"

namespace kiln {
namespace {

constexpr std::string_view kSuffix = ".status";
constexpr std::size_t kMostFiles = 512;
constexpr std::chrono::minutes kUnfinished{1};  // whoever writes a status takes a moment

Status check_file(const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return failure(Code::Refused, "it is not a regular file; remove it");
  if (status.st_uid != geteuid() && status.st_uid != 0)
    return failure(Code::Refused, "it belongs to somebody else; remove it");
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return failure(Code::Refused, "other users can write to it; remove it, or run: chmod go-w on it");
  if (static_cast<std::uint64_t>(status.st_size) > ProcessStatus::kMostBytes) {
    return failure(Code::Refused, "it is too large to be a status; remove it");
  }
  return {};
}

// Nothing where it went away meanwhile, as it does when its process ends.
Result<std::optional<ProcessStatus>> read_status(int folder, const std::string& name) {
  const Fd fd(openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd && errno == ENOENT) return std::optional<ProcessStatus>();
  if (!fd && errno == ELOOP) return failure(Code::Refused, "it is a symbolic link; remove it");
  if (!fd) return failure(Code::Io, "it cannot be opened: " + errno_text(errno));
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return failure(Code::Io, "it cannot be looked at: " + errno_text(errno));
  if (Status checked = check_file(status); !checked) return std::move(checked).error();
  const auto bytes = read_all(fd.get(), static_cast<std::size_t>(status.st_size), name);
  if (!bytes) return bytes.error();
  auto decoded = decode_status(bytes->view());
  if (!decoded) return std::move(decoded).error();
  return std::optional<ProcessStatus>(std::move(*decoded));
}

// In another namespace of process ids nobody here can say who lives.
bool has_died(const ProcessStatus& status) {
  return status.name_space == process_name_space() && start_of_process(status.pid) != status.started;
}

std::vector<std::string> status_files(int folder) {
  std::vector<std::string> names = list_directory(folder, ".");
  std::erase_if(names, [&](const std::string& name) {
    const bool unfinished = name.starts_with('.') && name.ends_with(kSuffix);
    if (unfinished) remove_abandoned(folder, name, kUnfinished);
    return unfinished || !name.ends_with(kSuffix);
  });
  if (names.size() > kMostFiles) names.resize(kMostFiles);
  return names;
}

}  // namespace

std::string status_folder(const Config& config) {
  if (config.status_dir == "off") return {};
  return config.status_dir.empty() ? host_local_path() + "/status" : config.status_dir;
}

std::vector<std::string> status_folders(const Config& config) {
  if (!config.status_dir.empty() && config.status_dir != "off") return {config.status_dir};
  std::vector<std::string> folders = {host_local_path() + "/status"};
  // A service has no XDG_RUNTIME_DIR where its user's shell does.
  std::string other = "/tmp/kiln-" + std::to_string(geteuid()) + "/status";
  if (other != folders.front()) folders.push_back(std::move(other));
  return folders;
}

Result<StatusListing> read_status_folder(const std::string& path) {
  StatusListing listing;
  const Result<Fd> folder = open_trusted_directory(path);
  if (!folder && folder.error().code == Code::Unavailable) return listing;
  if (!folder) return folder.error();
  for (const std::string& name : status_files(folder->get())) {
    auto status = read_status(folder->get(), name);
    if (!status) {
      listing.problems.push_back(join_path(path, name) + " is not believed: " + status.error().message);
    } else if (*status && has_died(**status)) {
      (void)unlinkat(folder->get(), name.c_str(), 0);
    } else if (*status) {
      listing.processes.push_back(std::move(**status));
    }
  }
  std::sort(listing.processes.begin(), listing.processes.end(),
            [](const ProcessStatus& a, const ProcessStatus& b) { return a.pid < b.pid; });
  return listing;
}

void sweep_status_folder(int folder) {
  for (const std::string& name : status_files(folder)) {
    const auto status = read_status(folder, name);
    if (status && *status && has_died(**status)) (void)unlinkat(folder, name.c_str(), 0);
  }
}

}  // namespace kiln
