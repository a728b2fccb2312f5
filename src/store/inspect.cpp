// What people ask of a DiskStore: the road of `kiln cache`, never of a hit.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "store/collector.hpp"
#include "store/disk_store.hpp"
#include "store/entry_format.hpp"

namespace kiln {
namespace {

// The key that a file's place says it has; nothing for what is not an entry of ours.
std::optional<Key> key_of_path(std::string_view path) {
  const auto digest = Digest::from_hex(path.substr(path.find_last_of('/') + 1));
  if (!digest) return std::nullopt;
  return Key{*digest};
}

std::optional<DiskStore::Listed> listed(int root, const CachedFile& file, const Key& key) {
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
  const auto artifact = decode_entry_description(*header, {beginning.data(), beginning.size()});
  if (!artifact) return std::nullopt;
  return DiskStore::Listed{key,
                           file.bytes,
                           header->payload_size,
                           artifact->about.unit,
                           artifact->target,
                           artifact->about.compiler,
                           artifact->about.cost_ms,
                           file.used};
}

}  // namespace

Result<DiskStore::Stats> DiskStore::stats() {
  Stats stats;
  stats.bound = options_.size_bound;
  const auto folder = directory_.folder();
  if (!folder) return folder.error();
  if (*folder == nullptr) return stats;
  for (const CachedFile& file : scan_cache(**folder).files) {
    stats.bytes += file.bytes;
    stats.by_kind[file.kind] += file.bytes;
    if (file.kind != CachedFile::Kind::Entry) continue;
    stats.oldest = stats.entries == 0 ? file.used : std::min(stats.oldest, file.used);
    stats.newest = std::max(stats.newest, file.used);
    ++stats.entries;
  }
  return stats;
}

Result<std::vector<DiskStore::Listed>> DiskStore::list() {
  std::vector<Listed> entries;
  const auto folder = directory_.folder();
  if (!folder) return folder.error();
  if (*folder == nullptr) return entries;
  for (const CachedFile& file : scan_cache(**folder).files) {
    if (file.kind != CachedFile::Kind::Entry) continue;
    const auto key = key_of_path(file.path);
    if (!key) continue;
    if (auto entry = listed((*folder)->root.get(), file, *key)) entries.push_back(std::move(*entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Listed& a, const Listed& b) { return a.key < b.key; });
  return entries;
}

Result<DiskStore::Verified> DiskStore::verify(const Advance& advance) {
  Verified verified;
  const auto folder = directory_.folder();
  if (!folder) return folder.error();
  if (*folder == nullptr) return verified;
  CacheScan scan = scan_cache(**folder);
  std::vector<CachedFile>& files = scan.files;
  std::erase_if(files, [](const CachedFile& file) { return file.kind != CachedFile::Kind::Entry; });
  for (const CachedFile& file : files) {
    if (advance) advance(verified.sound + verified.damaged, files.size());
    const std::string name = file.path.substr(file.path.find('/') + 1);
    const auto key = key_of_path(file.path);
    if (!key || name != ShardedName("entries", key->digest).c_str()) {
      ++verified.damaged;
      drop(name.c_str(), 0, {}, "a file that no entry can have");
      continue;
    }
    const auto hit = get(*key);
    if (!hit) return hit.error();
    *hit ? ++verified.sound : ++verified.damaged;
  }
  if (scan.unread) return *std::move(scan.unread);  // what was not seen is not sound
  return verified;
}

Result<Collected> DiskStore::clear() {
  const auto folder = directory_.folder();
  if (!folder) return folder.error();
  Collected cleared;
  if (*folder == nullptr) return cleared;
  const auto ours = directory_.folder_to_write();
  if (!ours) return ours.error();
  std::uint64_t left = 0;
  for (const CachedFile& file : scan_cache(**ours).files) {
    ++cleared.files;
    cleared.bytes += file.bytes;
    const bool keep = file.kind == CachedFile::Kind::Own || file.kind == CachedFile::Kind::OtherVersion ||
                      file.kind == CachedFile::Kind::Temporary;  // a writer may be at it; gc takes those left behind
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
