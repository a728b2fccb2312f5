// SPDX-License-Identifier: Apache-2.0
#include "cache/usage_journal.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/files/owned_file.hpp"
#include "cache/usage_format.hpp"

namespace kiln {
namespace {

constexpr const char* kName = "usage";

// Wraps around, because a forged journal can contain any value.
std::int64_t plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

// Returns an invalid descriptor if another user owns the journal or can write to it. The next scan replaces it.
Fd open_journal(CacheDirectory& directory, int flags) {
  const auto opened = directory.open();
  if (!opened || *opened == nullptr) return Fd();
  Fd fd(openat((*opened)->version.get(), kName, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status;
  if (!fd || fstat(fd.get(), &status) != 0 || !is_owned(status, (*opened)->owners)) return Fd();
  return fd;
}

std::optional<Bytes> read_from(int fd, std::uint64_t offset, std::uint64_t size) {
  if (lseek(fd, static_cast<off_t>(offset), SEEK_SET) < 0) return std::nullopt;
  auto bytes = read_all(fd, size, kName);
  if (!bytes || bytes->size() != size) return std::nullopt;
  return std::move(*bytes);
}

}  // namespace

bool UsageJournal::read_appended(int fd, ReadState& seen) {
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const auto head = read_from(fd, 0, kUsageHead);
  if (!head) return false;
  const auto scanned_at = decode_usage_head({head->data(), head->size()});
  if (!scanned_at) return false;
  // The header is compared too, because file systems reuse the inode number of a removed file.
  if (seen.inode != status.st_ino || seen.scanned_at != *scanned_at || seen.offset > size) {
    seen = {status.st_ino, kUsageHead, 0, *scanned_at};
  }
  const std::uint64_t whole = (size - seen.offset) / kUsageRecord * kUsageRecord;
  const auto records = read_from(fd, seen.offset, whole);
  if (!records) return false;
  seen.bytes = plus(seen.bytes, sum_of_usage({records->data(), records->size()}));
  seen.offset += whole;
  return true;
}

std::optional<UsageJournal::Total> UsageJournal::add(std::int64_t bytes) {
  const MutexLock lock(mutex_);
  const Fd fd = open_journal(directory_, O_RDWR | O_APPEND);
  if (!fd) return std::nullopt;
  if (bytes != 0 && !write_all(fd.get(), encode_usage_record(bytes), kName)) return std::nullopt;
  if (!read_appended(fd.get(), seen_)) {
    seen_ = {};
    return std::nullopt;
  }
  return Total{static_cast<std::uint64_t>(std::max<std::int64_t>(seen_.bytes, 0)), seen_.scanned_at};
}

std::uint64_t UsageJournal::length() {
  const Fd fd = open_journal(directory_, O_RDONLY);
  struct stat status;
  return fd && fstat(fd.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

Status UsageJournal::replace(std::uint64_t bytes, std::uint64_t mark) {
  std::int64_t since = 0;
  struct stat status;
  const Fd old = open_journal(directory_, O_RDONLY);
  if (old && mark >= kUsageHead && fstat(old.get(), &status) == 0 &&
      static_cast<std::uint64_t>(status.st_size) > mark) {
    const auto records = read_from(old.get(), mark, static_cast<std::uint64_t>(status.st_size) - mark);
    if (records) since = sum_of_usage({records->data(), records->size()});
  }
  const std::string head = encode_usage_head(directory_.clock().wall());
  return directory_.publish(kName, {head, encode_usage_record(plus(static_cast<std::int64_t>(bytes), since))},
                            [](std::int64_t) {});
}

}  // namespace kiln
