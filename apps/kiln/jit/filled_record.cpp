// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/filled_record.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/files/beneath.hpp"
#include "base/files/files.hpp"
#include "base/files/owned_file.hpp"
#include "base/text.hpp"

namespace kiln::jit {
namespace {

constexpr const char* kRecordName = ".kiln-filled";
constexpr std::string_view kRecordHeader = "kiln filled 1";
constexpr std::string_view kOthers = "other ";
constexpr std::string_view kOwn = "own ";
constexpr std::string_view kGone = "gone ";
constexpr off_t kMaxRecordBytes = off_t{128} << 20;

}  // namespace

Result<FilledRecord> FilledRecord::read(int root) {
  FilledRecord record;
  const Fd file = open_beneath(root, kRecordName, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file && errno == ENOENT) return record;
  struct stat status;
  if (!file || fstat(file.get(), &status) != 0) return io_error("cannot open", kRecordName, errno);
  if (!S_ISREG(status.st_mode) || !is_owned(status) || status.st_size > kMaxRecordBytes) {
    return make_error(Code::Denied, std::string(kRecordName) +
                                        " of the cache directory is too large or others can write to it; remove it "
                                        "with the entries of the directory");
  }
  const auto bytes = read_all(file.get(), static_cast<std::size_t>(status.st_size), kRecordName);
  if (!bytes) return bytes.error();
  record.exists_ = bytes->size() > 0;
  bool first = true;
  for (const std::string_view line : split(bytes->view(), '\n')) {
    if (first && record.exists_ && line != kRecordHeader) {
      return make_error(Code::Unsupported, std::string(kRecordName) +
                                               " of the cache directory is of another version of kiln; remove it with "
                                               "the entries of the directory");
    }
    first = false;
    if (line.starts_with(kOthers)) record.entries_[std::string(line.substr(kOthers.size()))] = true;
    if (line.starts_with(kOwn)) record.entries_.emplace(line.substr(kOwn.size()), false);
    if (line.starts_with(kGone)) record.entries_.erase(std::string(line.substr(kGone.size())));
  }
  return record;
}

Status FilledRecord::append(int root, std::string_view state, const std::string& path) {
  const Fd file(openat(root, kRecordName, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
  if (!file) return io_error("cannot write", kRecordName, errno);
  // The line end before the line ends one that a killed process did not finish.
  std::string line = exists_ ? "\n" : std::string(kRecordHeader) + "\n";
  line.append(state).append(path).append("\n");
  if (Status written = write_all(file.get(), line, kRecordName); !written) return written;
  exists_ = true;
  return {};
}

Status FilledRecord::add(int root, const std::string& path, bool of_others) {
  const auto known = entries_.find(path);
  if (known != entries_.end() && (known->second || !of_others)) return {};
  if (Status written = append(root, of_others ? kOthers : kOwn, path); !written) return written;
  entries_[path] = of_others;
  return {};
}

void FilledRecord::remove(int root, const std::string& path) {
  if (append(root, kGone, path)) entries_.erase(path);
}

bool FilledRecord::is_of_others(std::string_view path) const {
  const auto found = entries_.find(path);
  return found != entries_.end() && found->second;
}

}  // namespace kiln::jit
