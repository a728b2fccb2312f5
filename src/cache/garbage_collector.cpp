// SPDX-License-Identifier: Apache-2.0
#include "cache/garbage_collector.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "cache/entry_format.hpp"

namespace kiln {
namespace {

using namespace std::chrono_literals;

constexpr const char* kLock = "gc";
constexpr auto kHalfLife = 7 * 24h;
constexpr auto kStaleTemporaryAge = 1h;
constexpr int kMaxDepth = 16;  // installed headers have 10

CachedFile::Kind kind_of(std::string_view path) {
  const std::string_view inside = path.substr(path.find('/') + 1);
  if (inside == CacheDirectory::kTag) return CachedFile::Kind::Internal;
  if (!path.starts_with(std::string(CacheDirectory::kVersion) + "/")) return CachedFile::Kind::OtherVersion;
  if (inside.starts_with("entries/")) return CachedFile::Kind::Entry;
  if (inside.starts_with("hints/")) return CachedFile::Kind::Hint;
  if (inside.starts_with("history/")) return CachedFile::Kind::History;
  if (inside.starts_with("tmp/")) return CachedFile::Kind::Temporary;
  return CachedFile::Kind::Internal;
}

bool is_version(std::string_view name) {
  return name.size() > 1 && name.front() == 'v' &&
         std::all_of(name.begin() + 1, name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Returns the names in a directory. A directory that was removed during the scan is empty.
std::vector<std::string> names_in(int root, const std::string& directory, CacheScan& scan) {
  auto names = read_directory(root, directory.c_str());
  if (names) return std::move(*names);
  if (faccessat(root, directory.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT) {
    scan.error = std::move(names).error();
  }
  return {};
}

void walk(int root, const std::string& directory, int depth, CacheScan& scan) {
  std::vector<std::string> names = names_in(root, directory, scan);
  // `tmp` is scanned first. The journal already counts these files, and one that is renamed during the scan is seen
  // twice, never missed.
  std::partition(names.begin(), names.end(), [](const std::string& name) { return name == "tmp"; });
  for (const std::string& name : names) {
    std::string path = directory + "/" + name;
    struct stat status;
    if (fstatat(root, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno != ENOENT) scan.error = io_error("cannot stat", path, errno);
      continue;
    }
    if (S_ISDIR(status.st_mode)) {
      if (depth < kMaxDepth) walk(root, path, depth + 1, scan);
      continue;
    }
    CachedFile file;
    file.kind = kind_of(path);
    file.path = std::move(path);
    file.bytes = static_cast<std::uint64_t>(status.st_size);
    file.last_used = std::chrono::nanoseconds(FileStamp::of(status).modified_ns);
    scan.files.push_back(std::move(file));
  }
}

bool tagged(int root, const std::string& version) {
  return faccessat(root, (version + "/" + CacheDirectory::kTag).c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

double cost_of_entry(int root, const CachedFile& file) {
  const Fd fd(openat(root, file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!fd) return 0;
  const auto head = read_all(fd.get(), EntryHeader::kSize, file.path);
  if (!head) return 0;
  const auto header = decode_entry_header({head->data(), head->size()});
  return header && std::isfinite(header->cost_ms) ? std::max(header->cost_ms, 0.0) : 0;
}

// POSIX locks, because a forked child does not inherit them. Without a lock service every process collects. They remove
// the same files and only repeat the scan.
bool gc_lock_is_held(const CacheDirectory::OpenDirectory& directory, Fd& lock) {
  lock = Fd(openat(directory.version.get(), kLock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return false;
  // Every user who can read the file can lock it, and earlier versions created it readable.
  (void)fchmod(lock.get(), 0600);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return fcntl(lock.get(), F_SETLK, &whole) != 0 && (errno == EACCES || errno == EAGAIN);
}

struct Removal {
  int root;
  GcResult& result;

  bool remove(const CachedFile& file) {
    if (unlinkat(root, file.path.c_str(), 0) != 0) return false;
    ++result.removed_files;
    result.removed_bytes += file.bytes;
    return true;
  }
};

bool is_stale_temporary(const CacheDirectory& directory, const CachedFile& file, std::chrono::nanoseconds now) {
  if (file.kind != CachedFile::Kind::Temporary) return false;
  return now - file.last_used > kStaleTemporaryAge ||
         directory.is_writer_dead(file.path.substr(file.path.find_last_of('/') + 1));
}

// Returns the entry that was stored or hit last. It is not evicted in favor of other entries; otherwise its process
// would compile it again each time while all other entries cost more. Returns null if the entry takes most of the
// limit.
const CachedFile* latest_entry(const std::vector<CachedFile>& files, std::uint64_t bound) {
  const CachedFile* latest = nullptr;
  for (const CachedFile& file : files) {
    if (file.kind == CachedFile::Kind::Entry && (latest == nullptr || file.last_used > latest->last_used))
      latest = &file;
  }
  return latest != nullptr && latest->bytes <= bound / 2 ? latest : nullptr;
}

}  // namespace

double retention_value(CachedFile::Kind kind, double cost_ms, std::uint64_t bytes, std::chrono::nanoseconds unused) {
  // Even an empty file takes one block, and every compile takes at least 10 ms.
  double per_byte = (cost_ms + 10) / (static_cast<double>(bytes) + 4096);
  // An entry cannot be found without its hint, so a hint is worth as much as a costly entry, regardless of its size.
  // The value of histories and of other versions is unknown. A low value evicts them first among files of equal age.
  if (kind == CachedFile::Kind::Hint) per_byte = 0.02;
  if (kind == CachedFile::Kind::History || kind == CachedFile::Kind::OtherVersion) per_byte = 0.001;
  const double half_lives =
      std::max(0.0, std::chrono::duration<double>(unused) / std::chrono::duration<double>(kHalfLife));
  return per_byte * std::exp2(-half_lives);
}

CacheScan scan_cache(const CacheDirectory::OpenDirectory& directory) {
  CacheScan scan;
  for (const std::string& name : names_in(directory.root.get(), ".", scan)) {
    if (name == CacheDirectory::kVersion || (is_version(name) && tagged(directory.root.get(), name))) {
      walk(directory.root.get(), name, 0, scan);
    }
  }
  return scan;
}

Result<GcResult> collect_garbage(CacheDirectory& directory, UsageJournal& journal, std::uint64_t bound) {
  const auto opened = directory.open_for_write();
  if (!opened) return opened.error();
  GcResult result;
  Fd lock;
  if (gc_lock_is_held(**opened, lock)) {
    result.busy = true;
    return result;
  }
  const std::uint64_t mark = journal.length();
  CacheScan scan = scan_cache(**opened);
  std::vector<CachedFile>& files = scan.files;
  const std::chrono::nanoseconds now = directory.clock().wall();
  Removal removal{(*opened)->root.get(), result};
  std::erase_if(files, [&](const CachedFile& file) {
    ++result.files;
    result.bytes += file.bytes;
    return is_stale_temporary(directory, file, now) && removal.remove(file);
  });
  if (bound != 0 && result.bytes - result.removed_bytes > bound) {
    struct Candidate {
      double retention_value;
      const CachedFile* file;
    };
    std::vector<Candidate> candidates;
    const CachedFile* const latest = latest_entry(files, bound);
    for (const CachedFile& file : files) {
      if (&file == latest) continue;
      if (file.kind == CachedFile::Kind::Internal || file.kind == CachedFile::Kind::Temporary) continue;
      const double cost = file.kind == CachedFile::Kind::Entry ? cost_of_entry(removal.root, file) : 0;
      candidates.push_back({retention_value(file.kind, cost, file.bytes, now - file.last_used), &file});
    }
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return a.retention_value != b.retention_value ? a.retention_value < b.retention_value
                                                    : a.file->path < b.file->path;
    });
    const std::uint64_t goal = bound - bound / 10;
    for (const Candidate& candidate : candidates) {
      if (result.bytes - result.removed_bytes <= goal) break;
      removal.remove(*candidate.file);
    }
  }
  // A partial sum would let the cache grow past its limit until the next scan.
  if (scan.error) return *std::move(scan.error);
  if (Status status = journal.replace(result.bytes - result.removed_bytes, mark); !status) {
    return std::move(status).error();
  }
  return result;
}

}  // namespace kiln
