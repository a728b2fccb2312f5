// SPDX-License-Identifier: Apache-2.0
#include "session/pch_place.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "base/process/environment.hpp"
#include "cache/local_claims.hpp"
#include "worker/nameless_pch_cache.hpp"

namespace kiln {
namespace {

using Storage = PchCache::Options::Storage;

// The least disk space that is of use: a few small headers.
constexpr std::uint64_t kMinDisk = std::uint64_t{16} << 20;
constexpr std::uint64_t kFreeDiskParts = 4;
constexpr std::uint64_t kMemoryLimitParts = 10;

std::string megabytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MB"; }

bool is_in_memory(int fd) {
  struct statfs status;
  if (fstatfs(fd, &status) != 0) return false;
  return static_cast<std::uint32_t>(status.f_type) == TMPFS_MAGIC ||
         static_cast<std::uint32_t>(status.f_type) == RAMFS_MAGIC;
}

std::uint64_t free_space(int fd) {
  struct statvfs status;
  return fstatvfs(fd, &status) == 0 ? std::uint64_t{status.f_bavail} * status.f_frsize : 0;
}

// Returns whether two directories are on the same mount. Without mount ids (kernels before 5.8), two mounts of one file
// system count as the same.
bool on_same_mount(int one, const std::string& other) {
#ifdef STATX_MNT_ID
  struct statx first;
  struct statx second;
  const unsigned wanted = STATX_MNT_ID;
  if (statx(one, "", AT_EMPTY_PATH, wanted, &first) == 0 && statx(AT_FDCWD, other.c_str(), 0, wanted, &second) == 0 &&
      (first.stx_mask & second.stx_mask & wanted) != 0) {
    return first.stx_mnt_id == second.stx_mnt_id;
  }
#endif
  struct stat status;
  struct stat root;
  return fstat(one, &status) != 0 || stat(other.c_str(), &root) != 0 || status.st_dev == root.st_dev;
}

// Returns the directory in which a missing directory would be created.
std::string nearest_directory(std::string path) {
  while (path.size() > 1 && !is_directory(path)) path = parent_path(path);
  return path;
}

Fd open_directory(const std::string& path) { return Fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }

// The search for a place in a container. Not thread-safe.
class ContainerSearch {
 public:
  ContainerSearch(const Config& config, const std::string& cache_root, const PchSurroundings& surroundings)
      : max_(config.pch_max_bytes), cache_root_(cache_root), surroundings_(surroundings) {}

  std::optional<PchCache::Options> find() {
    if (auto place = on_volume()) return place;
    // XDG_RUNTIME_DIR is the place that the user wants for such files, wherever it is.
    const std::string runtime = environment_variable("XDG_RUNTIME_DIR").value_or("");
    const std::string shared = surroundings_.memory + "/kiln-" + std::to_string(geteuid());
    if (runtime.empty() && !has_own_ipc_namespace(surroundings_.files)) {
      reject(shared, "the container has the host's IPC namespace, so files there can outlive it");
    } else if (auto place = in_memory(runtime.empty() ? shared : host_local_path())) {
      return place;
    }
    const std::string temporary = environment_variable("TMPDIR").value_or("/tmp");
    for (const std::string& directory : {cache_root_, temporary}) {
      if (auto place = without_name(directory)) return place;
    }
    return std::nullopt;
  }

  /// Returns why each place was rejected.
  const std::string& rejected() const { return rejected_; }

 private:
  void reject(const std::string& place, const std::string& reason) {
    if (!rejected_.empty()) rejected_ += "; ";
    rejected_ += place + ": " + reason;
  }

  // `used` is the memory that the cache already uses.
  std::uint64_t memory_bound(std::uint64_t used) const {
    const std::uint64_t free = available_memory(surroundings_.files);
    const std::uint64_t available = free > UINT64_MAX - used ? UINT64_MAX : free + used;
    return std::min({max_, memory_limit(surroundings_.files) / kMemoryLimitParts, available / kFreeMemoryParts});
  }

  std::optional<PchCache::Options> on_volume() {
    if (cache_root_.empty()) {
      reject("the cache", "there is no cache directory that can be written to");
      return std::nullopt;
    }
    const std::string directory = join_path(cache_root_, "v1");
    const Fd nearest = open_directory(nearest_directory(directory));
    if (!nearest || claims_directory(cache_root_) != directory) {
      reject(cache_root_, "not writable, or shared with other hosts");
      return std::nullopt;
    }
    if (is_in_memory(nearest.get())) return within_memory_bound(directory + "/pch", nearest.get());
    if (!on_same_mount(nearest.get(), surroundings_.root)) return PchCache::Options{directory + "/pch", max_, {}};
    reject(cache_root_, "not on a volume, so its files can get into an image");
    return std::nullopt;
  }

  std::optional<PchCache::Options> in_memory(const std::string& directory) {
    const Fd parent = open_directory(parent_path(directory));
    if (!parent || !is_in_memory(parent.get())) {
      reject(directory, "not in memory");
      return std::nullopt;
    }
    if (Status made = make_private_directory(directory); !made) {
      reject(directory, made.error().message);
      return std::nullopt;
    }
    return within_memory_bound(directory + "/pch", parent.get());
  }

  std::optional<PchCache::Options> within_memory_bound(const std::string& directory, int fd) {
    const std::uint64_t used = PchCache({directory}).usage().bytes;
    const std::uint64_t bound = std::min(memory_bound(used), free_space(fd) + used);
    if (bound >= kMinPchMemory) return PchCache::Options{directory, bound, {}, Storage::Memory};
    reject(directory, "in memory, of which at most " + megabytes(bound) + " can be used, and " +
                          megabytes(kMinPchMemory) + " are needed");
    return std::nullopt;
  }

  std::optional<PchCache::Options> without_name(const std::string& directory) {
    if (directory.empty()) return std::nullopt;
    const std::string existing = nearest_directory(directory);
    const std::string what = "a file without a name in " + existing;
    const Fd file = make_nameless_file(existing);
    if (!file) {
      reject(what, std::strerror(errno));
      return std::nullopt;
    }
    const std::uint64_t bound = std::min(max_, free_space(file.get()) / kFreeDiskParts);
    const bool in_memory = is_in_memory(file.get());
    if (!in_memory && !is_network_filesystem(file.get()) && bound >= kMinDisk) return nameless(existing, bound);
    reject(what, in_memory ? "in memory" : bound < kMinDisk ? "the disk is almost full" : "on a network");
    return std::nullopt;
  }

  PchCache::Options nameless(const std::string& directory, std::uint64_t bound) const {
    const std::string verdicts = cache_root_.empty() ? std::string() : claims_directory(cache_root_) + "/checks";
    return {directory, bound, {}, Storage::Nameless, verdicts};
  }

  const std::uint64_t max_;
  const std::string& cache_root_;
  const PchSurroundings& surroundings_;
  std::string rejected_;
};

}  // namespace

std::optional<PchCache::Options> pch_cache_options(const Config& config, const std::string& cache_root,
                                                   std::string* failure_reason, const PchSurroundings& surroundings) {
  std::string ignored;
  std::string& reason = failure_reason != nullptr ? *failure_reason : ignored;
  reason.clear();
  if (config.pch_mode == false) reason = "precompiled headers are disabled (pch.mode = off)";
  if (config.disable) reason = "there is no cache directory to store precompiled headers next to";
  if (!reason.empty()) return std::nullopt;
  if (!config.pch_mode.has_value() && in_container(surroundings.files)) {
    ContainerSearch search(config, cache_root, surroundings);
    if (auto place = search.find()) return place;
    reason = "no place in this container: " + search.rejected() +
             "; mount a volume for the cache, or set KILN_PCH=on to store them in the cache anyway";
    return std::nullopt;
  }
  const std::string directory = join_path(cache_root, "v1");
  if (cache_root.empty()) {
    reason = "there is no cache directory to store precompiled headers next to";
  } else if (claims_directory(cache_root) != directory) {
    reason = cache_root + " is not writable or is shared with other hosts";
  }
  if (!reason.empty()) return std::nullopt;
  return PchCache::Options{directory + "/pch", config.pch_max_bytes, {}};
}

}  // namespace kiln
