// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "apps/kiln/doctor/doctor_checks.hpp"
#include "apps/kiln/output/console.hpp"
#include "base/files/files.hpp"
#include "session/components.hpp"

namespace kiln::cli {
namespace {

using State = DoctorCheck::State;

// Returns the file system type of a device from the mount table; empty if the table does not list the device.
std::string file_system_of(dev_t device) {
  const std::string wanted = std::to_string(major(device)) + ':' + std::to_string(minor(device));
  std::ifstream table("/proc/self/mountinfo");
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    std::string id, parent, number;
    fields >> id >> parent >> number;
    const std::size_t dash = line.find(" - ");
    if (number != wanted || dash == std::string::npos) continue;
    return line.substr(dash + 3, line.find(' ', dash + 3) - dash - 3);
  }
  return {};
}

// Returns the directory or its closest existing ancestor, in which it would be created.
std::string nearest_existing(std::string path) {
  struct stat status;
  while (path.size() > 1 && stat(path.c_str(), &status) != 0) path.resize(std::max<std::size_t>(path.rfind('/'), 1));
  return path;
}

void describe_place(DoctorCheck& finding, const std::string& root) {
  const std::string place = nearest_existing(root);
  struct stat status;
  if (stat(place.c_str(), &status) != 0) return;
  const std::string owner = status.st_uid == geteuid() ? "you"
                            : status.st_uid == 0       ? "root"
                                                       : "user " + std::to_string(status.st_uid);
  if (place != root) finding.details.push_back({"nearest existing directory", place});
  finding.details.push_back({"owner", owner});
  std::string system = file_system_of(status.st_dev);
  const Fd fd(open(place.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
  if (fd && is_network_filesystem(fd.get())) system += " (network: files are read, not mapped)";
  finding.details.push_back({"file system", system.empty() ? "unknown" : system});
  struct statvfs space;
  if (statvfs(place.c_str(), &space) == 0) {
    finding.details.push_back({"free space", format_bytes(std::uint64_t{space.f_bavail} * space.f_frsize)});
  }
}

// Describes a cache into which this user cannot write.
void describe_unwritable(DoctorCheck& finding, const std::string& root, const std::string& reason) {
  if (is_directory(root)) {
    finding.state = State::Info;  // normal for a cache in a container image
    finding.text = root + " is not writable, so compiled units are not stored: " + reason;
    finding.advice = "make it writable, or put a writable one before it: KILN_CACHE_PATH=/writable:" + root;
    return;
  }
  finding.state = State::Problem;
  finding.text = root + " does not exist and cannot be created, so nothing is cached: " + reason;
  finding.advice =
      "select a directory that you can write to with KILN_CACHE_DIR=/path, or set HOME to your own home directory";
}

std::string advice_for(const Error& error, const std::string& root) {
  if (error.message.find("run: ") != std::string::npos)
    return "run the given command, or select another directory with KILN_CACHE_DIR=/path";
  return "make " + root + " a directory that only you can write to, or select another one with KILN_CACHE_DIR=/path";
}

}  // namespace

DoctorCheck check_cache(const Config& config, std::size_t index) {
  const std::string& root = config.cache_path[index];
  DoctorCheck finding{State::Ok, index == 0 ? "cache" : "read-only cache", {}, {}, {{"what", "value"}}};
  describe_place(finding, root);

  const auto store = DiskStore::open(disk_store_options(config, root, index > 0));
  const Status usable = store ? (*store)->check() : Status(store.error());
  if (!usable) {
    finding.state = State::Problem;
    finding.text = root + " cannot be used, so nothing is cached: " + usable.error().message;
    finding.advice = advice_for(usable.error(), root);
    return finding;
  }
  const auto stats = (*store)->stats();
  if (stats) {
    finding.details.push_back({"entries", std::to_string(stats->entries)});
    finding.details.push_back({"size", format_bytes(stats->bytes) + " of at most " + format_bytes(stats->max_bytes)});
  }
  if (const Status writable = index == 0 ? (*store)->check_write() : Status(); !writable) {
    describe_unwritable(finding, root, writable.error().message);
    return finding;
  }
  if (index > 0 && !is_directory(root)) {
    finding.state = State::Info;
    finding.text = root + " does not exist: nothing is read from it";
    finding.advice = "create it, or remove it from KILN_CACHE_PATH";
    return finding;
  }
  finding.text = root + (index == 0 ? ": readable and writable" : ": readable");
  finding.advice = "nothing to do; 'kiln cache stats' prints details";
  return finding;
}

}  // namespace kiln::cli
