// SPDX-License-Identifier: Apache-2.0
#include "worker/nameless_pch_cache.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace kiln {

Fd make_nameless_file(const std::string& directory) {
  Fd file(open(directory.c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (file || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  // For file systems without such files, among them overlays of older kernels.
  std::string path = join_path(directory, "kiln-XXXXXX");
  file = Fd(mkostemp(path.data(), O_CLOEXEC));
  if (file && unlink(path.c_str()) != 0) return {};
  return file;
}

Status check_fits(const Pch& pch, const PchCache::Options& options) {
  if (pch.size <= options.max_bytes) return {};
  return make_error(Code::Denied, "precompiled headers of " + std::to_string(pch.size) + " bytes exceed the limit of " +
                                      std::to_string(options.max_bytes) +
                                      " bytes for all (KILN_PCH_MAX_SIZE; `kiln doctor` shows the place)");
}

std::unique_ptr<PchCache> make_pch_cache(PchCache::Options options) {
  if (options.storage == PchCache::Options::Storage::Nameless)
    return std::make_unique<NamelessPchCache>(std::move(options));
  return std::make_unique<PchCache>(std::move(options));
}

// A writer of a file without a name. Not thread-safe.
class NamelessPchCache::NamelessWriter final : public Writer {
 public:
  NamelessWriter(NamelessPchCache& owner, const Digest& key, Fd file)
      : Writer(key, std::string(kNamelessPch) + key.hex(), std::make_shared<const Fd>(std::move(file))), owner_(owner) {
  }
  NamelessWriter(NamelessWriter&&) = delete;
  ~NamelessWriter() override {
    const MutexLock lock(owner_.mutex_);
    owner_.writers_.erase(key_);
  }
  Status publish(const Pch& pch) override {
    if (getpid() != process_) return make_error(Code::Denied, "another process is creating this precompiled header");
    struct stat status;
    if (fstat(file_->get(), &status) != 0 || static_cast<std::uint64_t>(status.st_size) != pch.size) {
      return make_error(Code::Corrupt, "the precompiled header is not " + std::to_string(pch.size) + " bytes long");
    }
    Pch kept = pch;
    kept.path = path_;
    kept.file = file_;
    return owner_.keep(key_, std::move(kept));
  }
  Status publish(const PchVerdict& verdict) override { return owner_.publish_verdict(key_, verdict); }

 private:
  NamelessPchCache& owner_;
};

NamelessPchCache::NamelessPchCache(Options options)
    : PchCache(std::move(options)), verdict_files_({options_.verdicts, 0, options_.host}) {}

std::optional<Pch> NamelessPchCache::find(const Digest& key, std::string* /*corruption*/) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  found->second.used = ++uses_;
  return found->second.pch;
}

bool NamelessPchCache::requested_before(const Digest& /*key*/) { return false; }

std::unique_ptr<PchCache::Writer> NamelessPchCache::try_begin_write(const Digest& key) {
  Fd file = make_nameless_file(options_.directory);
  if (!file) return nullptr;
  {
    const MutexLock lock(mutex_);
    pid_t& writer = writers_[key];
    if (writer == getpid()) return nullptr;
    writer = getpid();  // a writer of the parent process is not continued in a child
  }
  return std::make_unique<NamelessWriter>(*this, key, std::move(file));
}

Status NamelessPchCache::keep(const Digest& key, Pch pch) {
  if (Status fits = check_fits(pch, options_); !fits) return fits;
  const MutexLock lock(mutex_);
  entries_[key] = {std::move(pch), ++uses_};
  std::uint64_t total = 0;
  for (const auto& [each, entry] : entries_) total += entry.pch.size;
  while (total > options_.max_bytes) {
    const auto oldest = std::min_element(entries_.begin(), entries_.end(), [](const auto& one, const auto& other) {
      return one.second.used < other.second.used;
    });
    total -= oldest->second.pch.size;
    entries_.erase(oldest);
  }
  return {};
}

// If the result cannot be stored, the next process repeats the check.
Status NamelessPchCache::publish_verdict(const Digest& key, const PchVerdict& verdict) {
  if (!options_.verdicts.empty()) (void)verdict_files_.publish_verdict(key, verdict);
  const MutexLock lock(mutex_);
  verdicts_[key] = verdict;
  return {};
}

std::optional<PchVerdict> NamelessPchCache::verdict(const Digest& key) {
  {
    const MutexLock lock(mutex_);
    const auto known = verdicts_.find(key);
    if (known != verdicts_.end() && is_current(known->second, system_clock().wall())) return known->second;
  }
  return options_.verdicts.empty() ? std::nullopt : verdict_files_.verdict(key);
}

bool NamelessPchCache::remove(const Digest& key) {
  const MutexLock lock(mutex_);
  return entries_.erase(key) > 0;
}

PchCache::Usage NamelessPchCache::usage() const {
  const MutexLock lock(mutex_);
  Usage usage{entries_.size(), 0};
  for (const auto& [key, entry] : entries_) usage.bytes += entry.pch.size;
  return usage;
}

void NamelessPchCache::clear() {
  const MutexLock lock(mutex_);
  entries_.clear();
}

}  // namespace kiln
