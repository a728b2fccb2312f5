#include "cccl/temp_storage.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace kiln {

bool TempStorage::Mark::covers(const Size& other) const {
  return asked && other.items <= size.items && other.others <= size.others;
}

// The mark itself where it covers the size, else what the library says of the larger of both in each number, so that
// nothing that was covered is lost.
Result<TempStorage::Mark> TempStorage::raise(const Mark& mark, const Size& size, const Query& query) {
  if (mark.covers(size)) return mark;
  Mark raised = mark;
  raised.size.items = std::max(mark.size.items, size.items);
  raised.size.others = std::max(mark.size.others, size.others);
  const Result<std::size_t> bytes = query(raised.size);
  if (!bytes) return bytes.error();
  // To the library no storage at all is a question, so there is always some.
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

Status TempStorage::expect(const Size& size, const Query& query) {
  Mark before;
  {
    const MutexLock lock(mutex_);
    before = expected_;
  }
  const Result<Mark> raised = raise(before, size, query);
  if (!raised) return raised.error();
  const MutexLock lock(mutex_);
  if (!expected_.covers(raised->size)) expected_ = *raised;
  return {};
}

std::shared_ptr<TempStorage::OnStream> TempStorage::on(void* stream) {
  const MutexLock lock(mutex_);
  std::shared_ptr<OnStream>& known = streams_[stream];
  if (known == nullptr) {
    known = std::make_shared<OnStream>();
    const MutexLock own(known->mutex);
    known->mark = expected_;
  }
  return known;
}

Status TempStorage::use(void* stream, const Size& size, const Query& query,
                        const std::function<Status(const Piece&)>& run) {
  const std::shared_ptr<OnStream> here = on(stream);
  // A lock of this stream alone: others go on while the driver allocates and launches.
  const MutexLock lock(here->mutex);
  if (Status fitting = fit(*here, stream, size, query); !fitting) return fitting;
  return run(here->piece);
}

Status TempStorage::fit(OnStream& here, void* stream, const Size& size, const Query& query) {
  const Result<bool> capturing = memory_->capturing(stream);
  if (!capturing) return capturing.error();
  const Result<Mark> needed = raise(here.mark, size, query);
  if (!needed) return needed.error();
  if (here.piece.memory == nullptr || needed->bytes > here.piece.bytes) {
    if (*capturing) {
      return failure(Code::Capturing, "this call needs " + std::to_string(needed->bytes) +
                                          " bytes of temporary storage, " + std::to_string(here.piece.bytes) +
                                          " are there and its stream records a graph; call reserve for the largest "
                                          "size before the recording, or give storage of your own");
    }
    if (Status grown = grow(here, stream, *needed); !grown) return grown;
  }
  here.mark = *needed;
  here.recorded = here.recorded || *capturing;
  return {};
}

// The old piece goes when the new one is there: a call that finds no memory leaves things as they were.
Status TempStorage::grow(OnStream& here, void* stream, const Mark& needed) {
  const Result<void*> memory = memory_->allocate(needed.bytes, stream);
  if (!memory) return memory.error();
  const Piece old = std::exchange(here.piece, Piece{*memory, needed.bytes});
  const bool recorded = std::exchange(here.recorded, false);
  if (old.memory == nullptr) return {};
  if (recorded || !memory_->release(old.memory, old.bytes, stream)) here.kept.push_back(old);
  here.kept_recorded = here.kept_recorded || recorded;
  return {};
}

Status TempStorage::release(void* stream) {
  std::shared_ptr<OnStream> here;
  {
    const MutexLock lock(mutex_);
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return {};
    here = found->second;
  }
  {
    const MutexLock own(here->mutex);
    if (here->recorded || here->kept_recorded) {
      return failure(Code::InvalidArgument,
                     "a graph was recorded with this stream's temporary storage: the stream and the storage stay "
                     "until the callable ends");
    }
    if (Status released = release_all(*here, stream); !released) return released;
  }
  const MutexLock lock(mutex_);
  streams_.erase(stream);
  return {};
}

Status TempStorage::release_all(OnStream& here, void* stream) {
  if (here.piece.memory != nullptr) here.kept.push_back(std::exchange(here.piece, Piece{}));
  here.mark = Mark{};
  Status outcome;
  std::vector<Piece> left;
  for (const Piece& piece : here.kept) {
    Status released = memory_->release(piece.memory, piece.bytes, stream);
    if (released) continue;
    left.push_back(piece);
    outcome = std::move(released);
  }
  here.kept = std::move(left);
  return outcome;
}

}  // namespace kiln
