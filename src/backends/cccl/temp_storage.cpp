// SPDX-License-Identifier: Apache-2.0
#include "backends/cccl/temp_storage.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace kiln {

bool TempStorage::SizeBound::covers(const Size& other) const {
  return asked && other.items <= size.items && other.others <= size.others;
}

// Returns the mark if it covers the size. Otherwise queries the library for the maximum of both sizes in each
// dimension, so that everything covered before stays covered.
Result<TempStorage::SizeBound> TempStorage::raise(const SizeBound& mark, const Size& size, const Query& query) {
  if (mark.covers(size)) return mark;
  SizeBound raised = mark;
  raised.size.items = std::max(mark.size.items, size.items);
  raised.size.others = std::max(mark.size.others, size.others);
  const Result<std::size_t> bytes = query(raised.size);
  if (!bytes) return bytes.error();
  // The library treats a call without storage as a query, so there is always at least one byte.
  raised.bytes = std::max({mark.bytes, *bytes, std::size_t{1}});
  raised.asked = true;
  return raised;
}

TempStorage::~TempStorage() {
  const MutexLock lock(mutex_);
  for (const auto& [stream, here] : streams_) {
    const MutexLock own(here->mutex);
    (void)release_all(*here, stream);
  }
}

Status TempStorage::prefetch_size(const Size& size, const Query& query) {
  const Result<SizeBound> queried = query_size(size, query);
  return queried ? Status() : Status(queried.error());
}

Result<TempStorage::SizeBound> TempStorage::query_size(const Size& size, const Query& query) {
  SizeBound before;
  {
    const MutexLock lock(mutex_);
    before = expected_;
  }
  Result<SizeBound> raised = raise(before, size, query);
  if (!raised) return raised;
  const MutexLock lock(mutex_);
  if (!expected_.covers(raised->size)) expected_ = *raised;
  return raised;
}

std::shared_ptr<TempStorage::StreamStorage> TempStorage::on(const StorageStream& stream) {
  const MutexLock lock(mutex_);
  std::shared_ptr<StreamStorage>& known = streams_[stream];
  if (known == nullptr) {
    known = std::make_shared<StreamStorage>();
    const MutexLock own(known->mutex);
    known->mark = expected_;
  }
  return known;
}

Status TempStorage::use(const StorageStream& stream, const Size& size, const Query& query, const Run& run) {
  for (;;) {
    const std::shared_ptr<StreamStorage> here = on(stream);
    // Locks this stream only: calls on other streams continue while the driver allocates and launches.
    const MutexLock lock(here->mutex);
    if (here->is_removed) continue;  // by a release after `on`
    if (Status fitting = ensure_capacity(*here, stream, size, query); !fitting) return fitting;
    return run(here->piece);
  }
}

Status TempStorage::use_once(const StorageStream& stream, const Size& size, const Query& query, const Run& run) {
  const Result<bool> capturing = memory_->capturing(stream);
  if (!capturing) return capturing.error();
  if (*capturing) {
    return make_error(Code::Capturing,
                      "a call on the per-thread stream allocates temporary storage, and the stream is capturing a "
                      "graph; pass your own storage");
  }
  const Result<SizeBound> needed = query_size(size, query);
  if (!needed) return needed.error();
  const Result<void*> memory = memory_->allocate(needed->bytes, stream);
  if (!memory) return memory.error();
  Status outcome = run({*memory, needed->bytes});
  // An error here is not one of the call, which is on the stream.
  (void)memory_->release(*memory, needed->bytes, stream);
  return outcome;
}

Status TempStorage::ensure_capacity(StreamStorage& here, const StorageStream& stream, const Size& size,
                                    const Query& query) {
  const Result<bool> capturing = memory_->capturing(stream);
  if (!capturing) return capturing.error();
  const Result<SizeBound> needed = raise(here.mark, size, query);
  if (!needed) return needed.error();
  if (here.piece.memory == nullptr || needed->bytes > here.piece.bytes) {
    if (*capturing) {
      return make_error(Code::Capturing,
                        "this call needs " + std::to_string(needed->bytes) + " bytes of temporary storage, " +
                            std::to_string(here.piece.bytes) +
                            " are allocated and its stream is capturing a graph; call reserve for the largest "
                            "size before the capture, or pass your own storage");
    }
    if (Status grown = grow(here, stream, *needed); !grown) return grown;
  }
  here.mark = *needed;
  here.recorded = here.recorded || *capturing;
  return {};
}

// Frees the old block after the new one is allocated: a failed allocation changes nothing.
Status TempStorage::grow(StreamStorage& here, const StorageStream& stream, const SizeBound& needed) {
  const Result<void*> memory = memory_->allocate(needed.bytes, stream);
  if (!memory) return memory.error();
  const Block old = std::exchange(here.piece, Block{*memory, needed.bytes});
  const bool recorded = std::exchange(here.recorded, false);
  if (old.memory == nullptr) return {};
  if (recorded || !memory_->release(old.memory, old.bytes, stream)) here.kept.push_back(old);
  here.kept_recorded = here.kept_recorded || recorded;
  return {};
}

Status TempStorage::release(const StorageStream& stream) {
  std::shared_ptr<StreamStorage> here;
  {
    const MutexLock lock(mutex_);
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return {};
    here = found->second;
  }
  {
    const MutexLock own(here->mutex);
    if (here->recorded || here->kept_recorded) {
      return make_error(
          Code::InvalidArgument,
          "a graph was captured with this stream's temporary storage: the stream and the storage must exist "
          "until the callable is destroyed");
    }
    if (Status released = release_all(*here, stream); !released) return released;
  }
  const MutexLock lock(mutex_);
  const MutexLock own(here->mutex);
  // Another thread may have used it again, or removed it.
  if (here->piece.memory != nullptr || !here->kept.empty() || here->is_removed) return {};
  here->is_removed = true;
  streams_.erase(stream);
  return {};
}

Status TempStorage::release_all(StreamStorage& here, const StorageStream& stream) {
  if (here.piece.memory != nullptr) here.kept.push_back(std::exchange(here.piece, Block{}));
  here.mark = SizeBound{};
  Status outcome;
  std::vector<Block> left;
  for (const Block& piece : here.kept) {
    Status released = memory_->release(piece.memory, piece.bytes, stream);
    if (released) continue;
    left.push_back(piece);
    outcome = std::move(released);
  }
  here.kept = std::move(left);
  return outcome;
}

}  // namespace kiln
