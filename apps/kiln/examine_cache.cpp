#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "apps/kiln/console.hpp"
#include "apps/kiln/examine.hpp"
#include "base/files.hpp"
#include "session/toolbox.hpp"

namespace kiln::cli {
namespace {

using State = Finding::State;

// What the mount table calls the file system of this device; empty where it has none of that number.
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

// The folder, or the nearest one above it that exists: where it would be made.
std::string nearest_existing(std::string path) {
  struct stat status;
  while (path.size() > 1 && stat(path.c_str(), &status) != 0) path.resize(std::max<std::size_t>(path.rfind('/'), 1));
  return path;
}

void describe_place(Finding& finding, const std::string& root) {
  const std::string place = nearest_existing(root);
  struct stat status;
  if (stat(place.c_str(), &status) != 0) return;
  const std::string owner = status.st_uid == geteuid() ? "you"
                            : status.st_uid == 0       ? "root"
                                                       : "user " + std::to_string(status.st_uid);
  finding.details.push_back({"owner", owner});
  std::string system = file_system_of(status.st_dev);
  const Fd fd(open(place.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
  if (fd && on_network(fd.get())) system += " (network: files are read and never mapped)";
  finding.details.push_back({"file system", system.empty() ? "unknown" : system});
  struct statvfs space;
  if (statvfs(place.c_str(), &space) == 0) {
    finding.details.push_back({"free space", size_text(std::uint64_t{space.f_bavail} * space.f_frsize)});
  }
}

std::string advice_for(const Error& error, const std::string& root) {
  if (error.message.find("run: ") != std::string::npos)
    return "do what it says, or choose another: KILN_CACHE_DIR=/path";
  return "make " + root + " a folder that you can write to and others cannot, or choose another: KILN_CACHE_DIR=/path";
}

}  // namespace

Finding examine_cache(const Config& config, std::size_t index) {
  const std::string& root = config.cache_path[index];
  Finding finding{State::Good, index == 0 ? "cache" : "read-only cache", {}, {}, {{"what", "value"}}};
  describe_place(finding, root);

  const auto store = DiskStore::open(disk_options_of(config, root, index > 0));
  const Status usable = store ? (*store)->check() : Status(store.error());
  if (!usable) {
    finding.state = State::Problem;
    finding.text = root + " cannot be used, so nothing is kept: " + usable.error().message;
    finding.advice = advice_for(usable.error(), root);
    return finding;
  }
  const auto stats = (*store)->stats();
  if (stats) {
    finding.details.push_back({"entries", std::to_string(stats->entries)});
    finding.details.push_back({"size", size_text(stats->bytes) + " of at most " + size_text(stats->bound)});
  }
  if (index == 0 && !(*store)->writable()) {
    finding.state = State::Note;  // an image's cache is meant to be like that
    finding.text = root + " can be read but not written: what is compiled is not kept";
    finding.advice = "make it writable, or put one that is before it: KILN_CACHE_PATH=/writable:" + root;
    return finding;
  }
  finding.text = root + (index == 0 ? ": read and written" : ": read");
  finding.advice = "nothing to do; 'kiln cache stats' says more";
  return finding;
}

}  // namespace kiln::cli
