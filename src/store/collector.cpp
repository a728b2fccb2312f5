#include "store/collector.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>

#include "base/error.hpp"
#include "base/files.hpp"
#include "store/entry_format.hpp"

namespace kiln {
namespace {

using namespace std::chrono_literals;

constexpr const char* kLock = "gc";
constexpr auto kHalfLife = 7 * 24h;
constexpr auto kOldTemporary = 1h;
constexpr int kDeepest = 6;

CachedFile::Kind kind_of(std::string_view path) {
  const std::string_view inside = path.substr(path.find('/') + 1);
  if (inside == CacheDirectory::kTag) return CachedFile::Kind::Own;
  if (!path.starts_with(std::string(CacheDirectory::kVersion) + "/")) return CachedFile::Kind::OtherVersion;
  if (inside.starts_with("entries/")) return CachedFile::Kind::Entry;
  if (inside.starts_with("hints/")) return CachedFile::Kind::Hint;
  if (inside.starts_with("history/")) return CachedFile::Kind::History;
  if (inside.starts_with("tmp/")) return CachedFile::Kind::Temporary;
  return CachedFile::Kind::Own;
}

bool is_version(std::string_view name) {
  return name.size() > 1 && name.front() == 'v' &&
         std::all_of(name.begin() + 1, name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// The names in a folder. One that went meanwhile had none.
std::vector<std::string> names_in(int root, const std::string& folder, CacheScan& scan) {
  auto names = read_directory(root, folder.c_str());
  if (names) return std::move(*names);
  if (faccessat(root, folder.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT) {
    scan.unread = std::move(names).error();
  }
  return {};
}

void walk(int root, const std::string& folder, int depth, CacheScan& scan) {
  std::vector<std::string> names = names_in(root, folder, scan);
  // First what is about to get its name, which was counted in the journal already: it may be seen twice, never not at
  // all.
  std::partition(names.begin(), names.end(), [](const std::string& name) { return name == "tmp"; });
  for (const std::string& name : names) {
    std::string path = folder + "/" + name;
    struct stat status;
    if (fstatat(root, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno != ENOENT) scan.unread = io_failure("cannot look at", path, errno);
      continue;
    }
    if (S_ISDIR(status.st_mode)) {
      if (depth < kDeepest) walk(root, path, depth + 1, scan);
      continue;
    }
    CachedFile file;
    file.kind = kind_of(path);
    file.path = std::move(path);
    file.bytes = static_cast<std::uint64_t>(status.st_size);
    file.used = std::chrono::nanoseconds(FileStamp::of(status).modified_ns);
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

// POSIX locks, because a child that is forked meanwhile does not inherit them. Without a lock service everybody
// collects: the same files go, only more often looked for.
bool another_collects(const CacheDirectory::Folder& folder, Fd& lock) {
  lock = Fd(openat(folder.version.get(), kLock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!lock) return false;
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return fcntl(lock.get(), F_SETLK, &whole) != 0 && (errno == EACCES || errno == EAGAIN);
}

struct Removal {
  int root;
  Collected& result;

  bool remove(const CachedFile& file) {
    if (unlinkat(root, file.path.c_str(), 0) != 0) return false;
    ++result.removed_files;
    result.removed_bytes += file.bytes;
    return true;
  }
};

bool left_behind(const CacheDirectory& directory, const CachedFile& file, std::chrono::nanoseconds now) {
  if (file.kind != CachedFile::Kind::Temporary) return false;
  return now - file.used > kOldTemporary || directory.writer_is_gone(file.path.substr(file.path.find_last_of('/') + 1));
}

// The entry that was put or hit last, which never goes for the sake of others: whoever put it would otherwise have to
// compile it again each time, for as long as all the others cost more. Null where it is most of what there may be.
const CachedFile* latest_entry(const std::vector<CachedFile>& files, std::uint64_t bound) {
  const CachedFile* latest = nullptr;
  for (const CachedFile& file : files) {
    if (file.kind == CachedFile::Kind::Entry && (latest == nullptr || file.used > latest->used)) latest = &file;
  }
  return latest != nullptr && latest->bytes <= bound / 2 ? latest : nullptr;
}

}  // namespace

double worth(CachedFile::Kind kind, double cost_ms, std::uint64_t bytes, std::chrono::nanoseconds unused) {
  // A block per file is what even an empty one takes; 10 ms is what any compile costs at least.
  double per_byte = (cost_ms + 10) / (static_cast<double>(bytes) + 4096);
  // Without its hint an entry cannot be found, so a hint is worth as much as a costly entry, whatever its size. What
  // the history and other versions are worth is not known: little, so that they go first among equally old ones.
  if (kind == CachedFile::Kind::Hint) per_byte = 0.02;
  if (kind == CachedFile::Kind::History || kind == CachedFile::Kind::OtherVersion) per_byte = 0.001;
  const double half_lives =
      std::max(0.0, std::chrono::duration<double>(unused) / std::chrono::duration<double>(kHalfLife));
  return per_byte * std::exp2(-half_lives);
}

CacheScan scan_cache(const CacheDirectory::Folder& folder) {
  CacheScan scan;
  for (const std::string& name : names_in(folder.root.get(), ".", scan)) {
    if (name == CacheDirectory::kVersion || (is_version(name) && tagged(folder.root.get(), name))) {
      walk(folder.root.get(), name, 0, scan);
    }
  }
  return scan;
}

Result<Collected> collect(CacheDirectory& directory, UsageJournal& journal, std::uint64_t bound) {
  const auto folder = directory.folder_to_write();
  if (!folder) return folder.error();
  Collected result;
  Fd lock;
  if (another_collects(**folder, lock)) {
    result.elsewhere = true;
    return result;
  }
  const std::uint64_t mark = journal.mark();
  CacheScan scan = scan_cache(**folder);
  std::vector<CachedFile>& files = scan.files;
  const std::chrono::nanoseconds now = directory.clock().wall();
  Removal removal{(*folder)->root.get(), result};
  std::erase_if(files, [&](const CachedFile& file) {
    ++result.files;
    result.bytes += file.bytes;
    return left_behind(directory, file, now) && removal.remove(file);
  });
  if (bound != 0 && result.bytes - result.removed_bytes > bound) {
    struct Candidate {
      double worth;
      const CachedFile* file;
    };
    std::vector<Candidate> candidates;
    const CachedFile* const latest = latest_entry(files, bound);
    for (const CachedFile& file : files) {
      if (&file == latest) continue;
      if (file.kind == CachedFile::Kind::Own || file.kind == CachedFile::Kind::Temporary) continue;
      const double cost = file.kind == CachedFile::Kind::Entry ? cost_of_entry(removal.root, file) : 0;
      candidates.push_back({worth(file.kind, cost, file.bytes, now - file.used), &file});
    }
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return a.worth != b.worth ? a.worth < b.worth : a.file->path < b.file->path;
    });
    const std::uint64_t goal = bound - bound / 10;
    for (const Candidate& candidate : candidates) {
      if (result.bytes - result.removed_bytes <= goal) break;
      removal.remove(*candidate.file);
    }
  }
  // Half of the sum would let the cache grow by the other half until somebody scans again.
  if (scan.unread) return *std::move(scan.unread);
  if (Status status = journal.replace(result.bytes - result.removed_bytes, mark); !status) {
    return std::move(status).error();
  }
  return result;
}

}  // namespace kiln
