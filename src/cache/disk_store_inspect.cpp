// SPDX-License-Identifier: Apache-2.0
// `DiskStore` functions for `kiln cache`. A cache hit does not use them.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "cache/disk_store.hpp"
#include "cache/entry_format.hpp"
#include "cache/garbage_collector.hpp"

namespace kiln {
namespace {

// Returns the key in the name of a file, or nothing if the file is not an entry of kiln.
std::optional<ArtifactKey> key_of_path(std::string_view path) {
  const auto digest = Digest::from_hex(path.substr(path.find_last_of('/') + 1));
  if (!digest) return std::nullopt;
  return ArtifactKey{*digest};
}

std::optional<DiskStore::EntryInfo> listed(int root, const CachedFile& file, const ArtifactKey& key) {
  const Fd fd(openat(root, file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!fd) return std::nullopt;
  const auto head = read_all(fd.get(), std::min<std::uint64_t>(file.bytes, 4096), file.path);
  if (!head) return std::nullopt;
  const auto header = decode_entry_header({head->data(), head->size()});
  if (!header || header->key != key || header->file_size() != file.bytes) return std::nullopt;
  Bytes beginning = *head;
  if (header->payload_offset() > beginning.size()) {
    if (lseek(fd.get(), 0, SEEK_SET) != 0) return std::nullopt;
    auto longer = read_all(fd.get(), header->payload_offset(), file.path);
    if (!longer) return std::nullopt;
    beginning = std::move(*longer);
  }
  const auto artifact = decode_entry_metadata(*header, {beginning.data(), beginning.size()});
  if (!artifact) return std::nullopt;
  return DiskStore::EntryInfo{key,
                              file.bytes,
                              header->payload_size,
                              artifact->metadata.unit,
                              artifact->target,
                              artifact->metadata.compiler,
                              artifact->metadata.cost_ms,
                              file.last_used};
}

}  // namespace

Result<DiskStore::Stats> DiskStore::stats() {
  Stats stats;
  stats.max_bytes = options_.max_bytes;
  const auto directory = directory_.open();
  if (!directory) return directory.error();
  if (*directory == nullptr) return stats;
  stats.activity = activity_.read();
  for (const CachedFile& file : scan_cache(**directory).files) {
    stats.bytes += file.bytes;
    stats.by_kind[file.kind] += file.bytes;
    if (file.kind != CachedFile::Kind::Entry) continue;
    stats.oldest = stats.entries == 0 ? file.last_used : std::min(stats.oldest, file.last_used);
    stats.newest = std::max(stats.newest, file.last_used);
    ++stats.entries;
  }
  return stats;
}

Result<std::vector<DiskStore::EntryInfo>> DiskStore::list_entries() {
  std::vector<EntryInfo> entries;
  const auto directory = directory_.open();
  if (!directory) return directory.error();
  if (*directory == nullptr) return entries;
  for (const CachedFile& file : scan_cache(**directory).files) {
    if (file.kind != CachedFile::Kind::Entry) continue;
    const auto key = key_of_path(file.path);
    if (!key) continue;
    if (auto entry = listed((*directory)->root.get(), file, *key)) entries.push_back(std::move(*entry));
  }
  std::sort(entries.begin(), entries.end(), [](const EntryInfo& a, const EntryInfo& b) { return a.key < b.key; });
  return entries;
}

Result<DiskStore::VerifyResult> DiskStore::verify(const ProgressCallback& advance) {
  VerifyResult verified;
  const auto directory = directory_.open();
  if (!directory) return directory.error();
  if (*directory == nullptr) return verified;
  CacheScan scan = scan_cache(**directory);
  std::vector<CachedFile>& files = scan.files;
  std::erase_if(files, [](const CachedFile& file) { return file.kind != CachedFile::Kind::Entry; });
  for (const CachedFile& file : files) {
    if (advance) advance(verified.valid + verified.corrupt, files.size());
    const std::string name = file.path.substr(file.path.find('/') + 1);
    const auto key = key_of_path(file.path);
    if (!key || name != ShardedName("entries", key->digest).c_str()) {
      ++verified.corrupt;
      drop(name.c_str(), 0, {}, "the file name is not a valid entry name");
      continue;
    }
    const auto hit = get(*key, {});
    if (!hit) return hit.error();
    *hit ? ++verified.valid : ++verified.corrupt;
  }
  if (scan.error) return *std::move(scan.error);  // files that were not scanned are not verified
  return verified;
}

Result<GcResult> DiskStore::clear() {
  const auto directory = directory_.open();
  if (!directory) return directory.error();
  GcResult cleared;
  if (*directory == nullptr) return cleared;
  const auto ours = directory_.open_for_write();
  if (!ours) return ours.error();
  std::uint64_t left = 0;
  for (const CachedFile& file : scan_cache(**ours).files) {
    ++cleared.files;
    cleared.bytes += file.bytes;
    const bool keep = file.kind == CachedFile::Kind::Internal || file.kind == CachedFile::Kind::OtherVersion ||
                      file.kind == CachedFile::Kind::Temporary;  // may still be in use by a writer; `gc` removes stale
                                                                 // ones
    if (keep || unlinkat((*ours)->root.get(), file.path.c_str(), 0) != 0) {
      left += file.bytes;
      continue;
    }
    ++cleared.removed_files;
    cleared.removed_bytes += file.bytes;
  }
  if (Status status = journal_.replace(left, 0); !status) return std::move(status).error();
  return cleared;
}

}  // namespace kiln
