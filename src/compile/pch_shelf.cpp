#include "compile/pch_shelf.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files.hpp"

namespace kiln {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr std::string_view kLarge = ".pch";
constexpr std::string_view kSmall = ".kpch";
constexpr std::string_view kTemporary = ".tmp";
constexpr std::string_view kAsked = ".asked";
// A unit with all of CUB has some 700 files and as many places where it looked in vain: less than a megabyte.
constexpr off_t kMostSmallBytes = off_t{16} << 20;
constexpr nanoseconds kAskedFor = 30 * 24h;
constexpr std::size_t kMostAsked = 4096;

// A file on the shelf, by its name. What has another name is not ours.
struct ShelfFile {
  enum class Kind : unsigned char { Large, Small, Temporary, Asked };
  std::string name;
  Digest key;
  Kind kind = Kind::Large;
  std::uint64_t bytes = 0;
  nanoseconds used{0};
};

std::string name_of(const Digest& key, std::string_view suffix) { return key.hex().append(suffix); }

std::optional<ShelfFile> parse_name(const std::string& name) {
  constexpr std::size_t kHex = 2 * sizeof(Digest::bytes);
  if (name.size() <= kHex) return std::nullopt;
  const auto key = Digest::from_hex(std::string_view(name).substr(0, kHex));
  const std::string_view suffix = std::string_view(name).substr(kHex);
  if (!key) return std::nullopt;
  ShelfFile file{name, *key};
  if (suffix == kLarge) {
    file.kind = ShelfFile::Kind::Large;
  } else if (suffix == kSmall) {
    file.kind = ShelfFile::Kind::Small;
  } else if (suffix == kAsked) {
    file.kind = ShelfFile::Kind::Asked;
  } else if (suffix.front() == '.' && suffix.ends_with(kTemporary)) {
    file.kind = ShelfFile::Kind::Temporary;
  } else {
    return std::nullopt;
  }
  return file;
}

std::vector<ShelfFile> files_in(int folder) {
  const nanoseconds now = system_clock().wall();
  std::vector<ShelfFile> files;
  for (const std::string& name : list_directory(folder, ".")) {
    auto file = parse_name(name);
    struct stat status;
    if (!file || fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || S_ISDIR(status.st_mode)) continue;
    const FileStamp stamp = FileStamp::of(status);
    file->bytes = stamp.size;
    // A time in the future, from a clock that was wrong once, would keep a file for ever.
    if (nanoseconds(stamp.modified_ns) < now + 1h) file->used = nanoseconds(stamp.modified_ns);
    files.push_back(std::move(*file));
  }
  return files;
}

// Another host could see what is on a network; and there a file may shrink while a compiler has it mapped.
Result<Fd> open_shelf(const std::string& path) {
  Result<Fd> folder = open_trusted_directory(path);
  if (folder && on_network(folder->get())) {
    return failure(Code::Refused, path + " is on a network, and precompiled headers do not leave the host");
  }
  return folder;
}

Result<Fd> make_shelf(const std::string& path) {
  Result<Fd> folder = open_shelf(path);
  if (folder || folder.error().code != Code::Unavailable) return folder;
  if (Status made = make_directories(path); !made) return std::move(made).error();
  return open_shelf(path);
}

Result<LockFile*> locks_of(const std::string& folder) { return LockFile::open(join_path(folder, "locks")); }

std::string host_or_this(const std::string& host) {
  if (!host.empty()) return host;
  std::string identity;
  if (const auto id = read_file("/etc/machine-id"); id && *id) identity = (*id)->view();
  char name[256] = "";
  (void)gethostname(name, sizeof name - 1);
  return identity + "\n" + name;
}

bool is_there(int folder, const std::string& name) {
  return faccessat(folder, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

// The small file first: without it the large one is not found, with it alone somebody would look for the large one.
void remove_pair(int folder, const Digest& key) {
  (void)unlinkat(folder, name_of(key, kSmall).c_str(), 0);
  (void)unlinkat(folder, name_of(key, kLarge).c_str(), 0);
}

// Removes what was found damaged, unless somebody makes it anew or has done so since `small` was opened. An open file's
// number is not given to another.
void drop(const std::string& path, int folder, const Digest& key, const struct stat& small) {
  const Result<LockFile*> locks = locks_of(path);
  if (!locks) return;
  const LockFile::Hold hold = (*locks)->hold(key);
  struct stat now;
  if (!hold || fstatat(folder, name_of(key, kSmall).c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (now.st_ino == small.st_ino && now.st_dev == small.st_dev) remove_pair(folder, key);
}

Result<Pch> read_small(int fd, const struct stat& status, const Digest& key, const std::string& host) {
  if (!S_ISREG(status.st_mode) || status.st_size > kMostSmallBytes) {
    return failure(Code::Corrupt, "a precompiled header's description that cannot be one");
  }
  const Result<Bytes> bytes = read_all(fd, static_cast<std::size_t>(status.st_size), "a precompiled header");
  if (!bytes) return bytes.error();
  return decode_pch(bytes->view(), key, host);
}

bool has_size(int folder, const std::string& name, std::uint64_t size) {
  struct stat status;
  return fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
         static_cast<std::uint64_t>(status.st_size) == size;
}

// By our clock: the one that file systems stamp files with lags some milliseconds behind, and the order would suffer.
void note_use(int folder, const Digest& key) {
  const nanoseconds now = system_clock().wall();
  const timespec time{now.count() / 1'000'000'000, now.count() % 1'000'000'000};
  const timespec times[2] = {time, time};
  (void)utimensat(folder, name_of(key, kSmall).c_str(), times, AT_SYMLINK_NOFOLLOW);
}

// Marks are small, but who asks about new keys for ever would fill the folder with them.
void forget_old_questions(int folder, std::vector<ShelfFile> asked) {
  std::sort(asked.begin(), asked.end(), [](const ShelfFile& a, const ShelfFile& b) { return a.used > b.used; });
  const nanoseconds now = system_clock().wall();
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (i >= kMostAsked || now - asked[i].used > kAskedFor) (void)unlinkat(folder, asked[i].name.c_str(), 0);
  }
}

// What makers have left that died: before they published, or between the one file and the other.
void sweep(int folder, LockFile& locks) {
  std::map<Digest, int> halves;
  std::vector<ShelfFile> asked;
  for (ShelfFile& file : files_in(folder)) {
    switch (file.kind) {
      case ShelfFile::Kind::Large:
      case ShelfFile::Kind::Small: ++halves[file.key]; break;
      case ShelfFile::Kind::Temporary:
        if (const LockFile::Hold hold = locks.hold(file.key)) (void)unlinkat(folder, file.name.c_str(), 0);
        break;
      case ShelfFile::Kind::Asked: asked.push_back(std::move(file)); break;
    }
  }
  for (const auto& [key, count] : halves) {
    if (count == 2) continue;
    const LockFile::Hold hold = locks.hold(key);
    // The other half may have come since we looked; with the key in hand none comes now.
    const bool whole = is_there(folder, name_of(key, kLarge)) && is_there(folder, name_of(key, kSmall));
    if (hold && !whole) remove_pair(folder, key);
  }
  forget_old_questions(folder, std::move(asked));
}

// Whoever has just published still has its key in hand, so that one is passed over like all that are being made. Two
// processes that make room at once may remove one too many, which costs making that again.
void make_room(int folder, LockFile& locks, std::uint64_t bound) {
  struct Pair {
    Digest key;
    std::uint64_t bytes = 0;
    nanoseconds used{0};  // stays so where there is no small file: it is of no use
  };
  std::map<Digest, Pair> pairs;
  std::uint64_t total = 0;
  for (const ShelfFile& file : files_in(folder)) {
    total += file.bytes;
    if (file.kind != ShelfFile::Kind::Large && file.kind != ShelfFile::Kind::Small) continue;
    Pair& pair = pairs[file.key];
    pair.key = file.key;
    pair.bytes += file.bytes;
    if (file.kind == ShelfFile::Kind::Small) pair.used = file.used;
  }
  std::vector<Pair> oldest_first;
  for (const auto& [key, pair] : pairs) oldest_first.push_back(pair);
  std::stable_sort(oldest_first.begin(), oldest_first.end(),
                   [](const Pair& a, const Pair& b) { return a.used < b.used; });
  for (const Pair& pair : oldest_first) {
    if (total <= bound) return;
    const LockFile::Hold hold = locks.hold(pair.key);
    if (!hold) continue;
    remove_pair(folder, pair.key);
    total -= pair.bytes;
  }
}

}  // namespace

std::optional<Pch> PchShelf::find(const Digest& key, std::string* damage) {
  const Result<Fd> folder = open_shelf(options_.folder);
  if (!folder) return std::nullopt;
  const Fd small(
      openat(folder->get(), name_of(key, kSmall).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat status;
  if (!small || fstat(small.get(), &status) != 0) return std::nullopt;
  Result<Pch> pch = read_small(small.get(), status, key, host_or_this(options_.host));
  const std::string large = name_of(key, kLarge);
  if (!pch || !has_size(folder->get(), large, pch->size)) {
    if (damage != nullptr) *damage = pch ? large + " is gone or has another size" : pch.error().message;
    drop(options_.folder, folder->get(), key, status);
    return std::nullopt;
  }
  note_use(folder->get(), key);
  pch->path = join_path(options_.folder, large);
  return std::move(*pch);
}

bool PchShelf::asked_before(const Digest& key) {
  const Result<Fd> folder = make_shelf(options_.folder);
  if (!folder) return false;
  const Fd mark(
      openat(folder->get(), name_of(key, kAsked).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  return !mark && errno == EEXIST;
}

std::unique_ptr<PchShelf::Making> PchShelf::begin(const Digest& key) {
  const Result<Fd> folder = make_shelf(options_.folder);
  if (!folder) return nullptr;
  const Result<LockFile*> locks = locks_of(options_.folder);
  if (!locks) return nullptr;
  const pid_t self = getpid();
  if (swept_by_.exchange(self) != self) sweep(folder->get(), **locks);
  LockFile::Hold hold = (*locks)->hold(key);
  if (!hold) return nullptr;
  std::string suffix = "." + std::to_string(self) + "-" + std::to_string(system_clock().steady().count());
  suffix += kTemporary;
  std::string path = join_path(options_.folder, name_of(key, suffix));
  return std::unique_ptr<Making>(new Making(*this, key, **locks, std::move(hold), std::move(path)));
}

PchShelf::Making::Making(PchShelf& shelf, const Digest& key, LockFile& locks, LockFile::Hold hold, std::string path)
    : shelf_(shelf), key_(key), locks_(locks), hold_(std::move(hold)), path_(std::move(path)), process_(getpid()) {}

PchShelf::Making::~Making() {
  // A child of fork got a copy of this object, not the key, and what is being made is its parent's.
  if (getpid() == process_) (void)unlink(path_.c_str());  // once it is published nothing has this name
}

Status PchShelf::Making::publish(const Pch& pch) {
  if (getpid() != process_) return failure(Code::Refused, "another process makes this precompiled header");
  const PchShelf::Options& options = shelf_.options_;
  const Result<Fd> folder = open_shelf(options.folder);
  if (!folder) return folder.error();
  const std::string temporary = name_in_folder(path_);
  if (!has_size(folder->get(), temporary, pch.size)) {
    return failure(Code::Corrupt, path_ + " is not there, or is not " + std::to_string(pch.size) + " bytes long");
  }
  if (pch.size > options.size_bound) {
    return failure(Code::Refused, "precompiled headers of " + std::to_string(pch.size) + " bytes are more than the " +
                                      std::to_string(options.size_bound) + " that all may take (KILN_PCH_MAX_SIZE)");
  }
  // The old one goes first, so that no small file ever stands beside another's large one.
  remove_pair(folder->get(), key_);
  if (renameat(folder->get(), temporary.c_str(), folder->get(), name_of(key_, kLarge).c_str()) != 0) {
    return io_failure("cannot publish", path_, errno);
  }
  // Not synced: what a crash of the machine leaves half-written is found by its checksum.
  const std::string small = encode_pch(key_, host_or_this(options.host), pch);
  Status published = publish_file(folder->get(), temporary, name_of(key_, kSmall), {small}, Durability::Unsynced);
  if (!published) {
    remove_pair(folder->get(), key_);
    return published;
  }
  note_use(folder->get(), key_);
  make_room(folder->get(), locks_, options.size_bound);
  return {};
}

void PchShelf::remove(const Digest& key) {
  const Result<Fd> folder = open_shelf(options_.folder);
  if (!folder) return;
  const Result<LockFile*> locks = locks_of(options_.folder);
  if (!locks) return;
  if (const LockFile::Hold hold = (*locks)->hold(key)) remove_pair(folder->get(), key);
}

PchShelf::Usage PchShelf::usage() const {
  Usage usage;
  const Result<Fd> folder = open_shelf(options_.folder);
  if (!folder) return usage;
  for (const ShelfFile& file : files_in(folder->get())) {
    if (file.kind == ShelfFile::Kind::Asked) continue;
    ++usage.files;
    usage.bytes += file.bytes;
  }
  return usage;
}

void PchShelf::clear() {
  const Result<Fd> folder = open_shelf(options_.folder);
  if (!folder) return;
  const Result<LockFile*> locks = locks_of(options_.folder);
  if (!locks) return;
  // Not the lock file: who makes something holds on to it, and a new one would let others in beside him.
  std::vector<ShelfFile> files = files_in(folder->get());
  std::stable_partition(files.begin(), files.end(),
                        [](const ShelfFile& file) { return file.kind == ShelfFile::Kind::Small; });
  for (const ShelfFile& file : files) {
    if (const LockFile::Hold hold = (*locks)->hold(file.key)) (void)unlinkat(folder->get(), file.name.c_str(), 0);
  }
}

}  // namespace kiln
