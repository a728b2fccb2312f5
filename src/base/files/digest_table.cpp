// SPDX-License-Identifier: Apache-2.0
#include "base/files/digest_table.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "base/files/owned_file.hpp"
#include "base/files/replace_file.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

constexpr char kMagic[8] = {'K', 'I', 'L', 'N', 'D', 'I', 'G', '1'};
constexpr std::uint32_t kVersion = 2;
constexpr std::size_t kMaxSlots = std::size_t{1} << 20;
constexpr std::size_t kMinSlots = 64;
// A process that only queries the compiler reads a few slots, which costs a tenth of reading the whole table. A process
// that queries the headers of CUB loads the whole table after this many queries, unless the table is larger than
// `kMaxLoadedBytes`.
constexpr std::size_t kFewQuestions = 8;
constexpr std::size_t kMaxLoadedBytes = std::size_t{8} << 20;
// A table is at most three quarters full, so longer chains do not occur. A file beyond this limit is digested again.
constexpr std::size_t kMaxProbes = 256;

struct Head {
  char magic[8];
  std::uint32_t version;
  std::uint32_t slots;
};
static_assert(sizeof(Head) == 16 && sizeof(DigestSlot) == 104);

constexpr std::size_t room_for(std::size_t files) { return files + files / 3; }
constexpr std::size_t size_of_file(std::size_t slots) { return sizeof(Head) + slots * sizeof(DigestSlot); }

}  // namespace

std::uint64_t DigestSlot::hash_of(std::string_view path) {
  const std::uint64_t hash = xxh3(as_bytes(path));
  return hash == 0 ? 1 : hash;
}

std::uint64_t DigestSlot::computed_checksum() const {
  return xxh3({reinterpret_cast<const std::uint8_t*>(this), offsetof(DigestSlot, checksum)});
}

std::unique_ptr<DigestTable> DigestTable::open(const std::string& path) {
  auto table = std::make_unique<DigestTable>();
  table->file_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  const int fd = table->file_.get();
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || !is_owned(status)) return nullptr;
  Head head{};
  if (pread(fd, &head, sizeof head, 0) != sizeof head) return nullptr;
  if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0 || head.version != kVersion) return nullptr;
  const bool good = head.slots >= kMinSlots && head.slots <= kMaxSlots && std::has_single_bit(head.slots) &&
                    static_cast<std::size_t>(status.st_size) == size_of_file(head.slots);
  if (!good) return nullptr;
  table->slots_ = head.slots;
  return table;
}

DigestTable::~DigestTable() {
  if (loaded_ != nullptr) munmap(loaded_, slots_ * sizeof(DigestSlot));
}

// Loads the table into prefaulted pages: one page fault per page would cost several times as much as reading the file.
bool DigestTable::load() {
  if (loaded_ != nullptr) return true;
  const std::size_t size = slots_ * sizeof(DigestSlot);
  if (size > kMaxLoadedBytes) return false;
  void* pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (pages == MAP_FAILED) return false;
  if (pread(file_.get(), pages, size, sizeof(Head)) == static_cast<ssize_t>(size)) {
    loaded_ = static_cast<DigestSlot*>(pages);
    return true;
  }
  munmap(pages, size);
  return false;
}

const DigestSlot* DigestTable::slot(std::size_t index) {
  if (loaded_ != nullptr) return &loaded_[index];
  if (index < some_start_ || index - some_start_ >= some_count_) {
    some_start_ = index;
    some_count_ = std::min(some_.size(), slots_ - index);
    const std::size_t size = some_count_ * sizeof(DigestSlot);
    const auto place = static_cast<off_t>(sizeof(Head) + index * sizeof(DigestSlot));
    if (pread(file_.get(), some_.data(), size, place) != static_cast<ssize_t>(size)) {
      some_count_ = 0;
      return nullptr;
    }
  }
  return &some_[index - some_start_];
}

const DigestSlot* DigestTable::find(std::uint64_t path_hash) {
  if (++questions_ > kFewQuestions) (void)load();
  for (std::size_t i = 0; i < std::min(slots_, kMaxProbes); ++i) {
    const DigestSlot* found = slot((path_hash + i) & (slots_ - 1));
    if (found == nullptr || found->path_hash == 0) return nullptr;
    if (found->path_hash == path_hash) return found->checksum == found->computed_checksum() ? found : nullptr;
  }
  return nullptr;
}

Status DigestTable::save(const std::string& path, std::vector<DigestSlot> slots) {
  // Merges with the current file because another process may have saved since. The last process to rename wins; digests
  // that only the other process stored are computed again later.
  std::unordered_map<std::uint64_t, DigestSlot> all;
  if (const std::unique_ptr<DigestTable> old = open(path)) {
    (void)old->load();
    for (std::size_t i = 0; i < old->slots_; ++i) {
      const DigestSlot* one = old->slot(i);
      if (one != nullptr && one->path_hash != 0) all.emplace(one->path_hash, *one);
    }
  }
  if (room_for(all.size() + slots.size()) > kMaxSlots)
    all.clear();  // discards the old slots of a table that reached the maximum
  for (DigestSlot& one : slots) {
    one.checksum = one.computed_checksum();
    all.insert_or_assign(one.path_hash, one);
  }
  const std::size_t count = std::clamp(std::bit_ceil(room_for(all.size())), kMinSlots, kMaxSlots);

  std::string bytes(size_of_file(count), '\0');
  Head head{};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  head.version = kVersion;
  head.slots = static_cast<std::uint32_t>(count);
  std::memcpy(bytes.data(), &head, sizeof head);
  auto* const table = reinterpret_cast<DigestSlot*>(bytes.data() + sizeof(Head));
  for (const auto& [hash, one] : all) {
    for (std::size_t i = 0; i < count; ++i) {
      DigestSlot& place = table[(hash + i) & (count - 1)];
      if (place.path_hash != 0) continue;
      place = one;
      break;
    }
  }
  return replace_file(path, bytes, Durability::Unsynced);
}

}  // namespace kiln
