#include "store/usage_journal.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/codec.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

constexpr const char* kName = "usage";
constexpr std::string_view kMagic = "KILNUSE1";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHead = 8 + 4 + 4 + 8 + 8;
constexpr std::size_t kRecord = 16;

std::string record_of(std::int64_t bytes) {
  Writer out;
  out.u64(static_cast<std::uint64_t>(bytes)).u64(xxh3(as_bytes(out.bytes())));
  return std::move(out).bytes();
}

// The sum of whole, sound records; one that a crash or a network file system spoilt counts nothing.
std::int64_t sum_of(std::span<const std::uint8_t> records) {
  std::int64_t sum = 0;
  for (; records.size() >= kRecord; records = records.subspan(kRecord)) {
    Reader in(records.first(kRecord));
    const std::uint64_t bytes = in.u64();
    if (in.u64() == xxh3(records.first(8))) sum += static_cast<std::int64_t>(bytes);
  }
  return sum;
}

Fd open_journal(CacheDirectory& directory, int flags) {
  const auto folder = directory.folder();
  if (!folder || *folder == nullptr) return Fd();
  return Fd(openat((*folder)->version.get(), kName, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
}

std::optional<Bytes> read_from(int fd, std::uint64_t offset, std::uint64_t size) {
  if (lseek(fd, static_cast<off_t>(offset), SEEK_SET) < 0) return std::nullopt;
  auto bytes = read_all(fd, size, kName);
  if (!bytes || bytes->size() != size) return std::nullopt;
  return std::move(*bytes);
}

}  // namespace

bool UsageJournal::read_on(int fd, Seen& seen) {
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (seen.inode != status.st_ino || seen.offset > size) {
    seen = {};
    const auto head = read_from(fd, 0, kHead);
    if (!head) return false;
    const std::span<const std::uint8_t> bytes(head->data(), head->size());
    Reader in(bytes);
    if (in.raw(kMagic.size()) != kMagic || in.u32() != kVersion || in.u32() != 0) return false;
    seen.scanned_at = std::chrono::nanoseconds(static_cast<std::int64_t>(in.u64()));
    if (in.u64() != xxh3(bytes.first(kHead - 8))) return false;
    seen.offset = kHead;
  }
  const std::uint64_t whole = (size - seen.offset) / kRecord * kRecord;
  const auto records = read_from(fd, seen.offset, whole);
  if (!records) return false;
  seen.bytes += sum_of({records->data(), records->size()});
  seen.offset += whole;
  seen.inode = status.st_ino;
  return true;
}

std::optional<UsageJournal::Total> UsageJournal::add(std::int64_t bytes) {
  const MutexLock lock(mutex_);
  const Fd fd = open_journal(directory_, O_RDWR | O_APPEND);
  if (!fd) return std::nullopt;
  if (bytes != 0 && !write_all(fd.get(), record_of(bytes), kName)) return std::nullopt;
  if (!read_on(fd.get(), seen_)) {
    seen_ = {};
    return std::nullopt;
  }
  return Total{static_cast<std::uint64_t>(std::max<std::int64_t>(seen_.bytes, 0)), seen_.scanned_at};
}

std::uint64_t UsageJournal::mark() {
  const Fd fd = open_journal(directory_, O_RDONLY);
  struct stat status;
  return fd && fstat(fd.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

Status UsageJournal::replace(std::uint64_t bytes, std::uint64_t mark) {
  std::int64_t since = 0;
  struct stat status;
  const Fd old = open_journal(directory_, O_RDONLY);
  if (old && mark >= kHead && fstat(old.get(), &status) == 0 && static_cast<std::uint64_t>(status.st_size) > mark) {
    const auto records = read_from(old.get(), mark, static_cast<std::uint64_t>(status.st_size) - mark);
    if (records) since = sum_of({records->data(), records->size()});
  }
  Writer head;
  head.raw(kMagic.data(), kMagic.size()).u32(kVersion).u32(0);
  head.u64(static_cast<std::uint64_t>(directory_.clock().wall().count()));
  head.u64(xxh3(as_bytes(head.bytes())));
  const auto published = directory_.publish(kName, {head.bytes(), record_of(static_cast<std::int64_t>(bytes) + since)});
  if (!published) return published.error();
  return {};
}

}  // namespace kiln
