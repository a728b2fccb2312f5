// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include <kiln/result.hpp>

#include "base/mutex.hpp"

namespace kiln {

/// The identity of a stream: its handle and, for a stream whose handle is the same in every context, its context.
struct StorageStream {
  StorageStream(void* handle, std::uint64_t its_context = 0)  // NOLINT(google-explicit-constructor)
      : native(handle), context(its_context) {}
  bool operator==(const StorageStream&) const = default;

  void* native;
  std::uint64_t context;  ///< 0 if the handle identifies the stream
};

/// A stream-ordered source of temporary storage. Thread-safe.
class StreamAllocator {
 public:
  virtual ~StreamAllocator() = default;
  virtual Result<void*> allocate(std::size_t bytes, const StorageStream& stream) = 0;
  /// Returns an error if the stream has a context that is not current in the calling thread.
  virtual Status release(void* memory, std::size_t bytes, const StorageStream& stream) = 0;
  /// Returns true if the stream is capturing a graph.
  virtual Result<bool> capturing(const StorageStream& stream) = 0;
};

/// The temporary storage of one callable: one block per stream that it is used on. A block grows as calls need and
/// never shrinks, so a program that has reached its largest size causes no more queries or allocations. The library is
/// queried only if a size exceeds all previously queried ones. It must never need more storage for a smaller size.
///
/// A stream must exist until this object is destroyed or `release` was called for the stream. Thread-safe.
class TempStorage {
 public:
  /// The size of a call: two numbers that the storage can depend on.
  struct Size {
    std::uint64_t items = 0;
    std::uint64_t others = 0;
  };
  /// Returns the number of bytes that a call of this size needs.
  using Query = std::function<Result<std::size_t>(const Size&)>;
  struct Block {
    void* memory = nullptr;
    std::size_t bytes = 0;
  };
  /// Puts a call on its stream with this block.
  using Run = std::function<Status(const Block&)>;

  explicit TempStorage(std::shared_ptr<StreamAllocator> memory) : memory_(std::move(memory)) {}
  ~TempStorage();
  TempStorage(const TempStorage&) = delete;
  TempStorage& operator=(const TempStorage&) = delete;

  /// Queries the storage for calls up to this size in advance, so that the first call of such a size on a stream need
  /// not.
  Status prefetch_size(const Size& size, const Query& query);

  /// Calls `run` with a block that is large enough for a call of this size. `run` puts the call on the stream before
  /// another thread can release the block in stream order. Allocates nothing while the stream is capturing a graph, and
  /// returns Code::Capturing if the block is too small. A block used by a graph stays unchanged until this object is
  /// destroyed.
  Status use(const StorageStream& stream, const Size& size, const Query& query, const Run& run);
  /// Same, with a block that is allocated and released in stream order for this call only: for the per-thread stream,
  /// which no other thread can release a block on. Returns Code::Capturing on a stream that is capturing a graph.
  Status use_once(const StorageStream& stream, const Size& size, const Query& query, const Run& run);

  /// Frees the storage of a stream that is about to be destroyed. Returns Code::InvalidArgument if a graph was captured
  /// with it.
  Status release(const StorageStream& stream);

 private:
  /// The result of a query: calls up to `size` need at most `bytes`.
  struct SizeBound {
    Size size;
    std::size_t bytes = 0;
    bool asked = false;
    bool covers(const Size& other) const;
  };
  struct StreamStorage {
    Mutex mutex;
    SizeBound mark KILN_GUARDED_BY(mutex);              // if a block exists, it has mark.bytes bytes
    Block piece KILN_GUARDED_BY(mutex);                 // empty before the first call
    bool recorded KILN_GUARDED_BY(mutex) = false;       // a graph uses the block
    std::vector<Block> kept KILN_GUARDED_BY(mutex);     // blocks that graphs use, or that could not be freed
    bool kept_recorded KILN_GUARDED_BY(mutex) = false;  // a graph uses one of them
    bool is_removed KILN_GUARDED_BY(mutex) = false;     // no longer in `streams_`, so that nothing would free a block
  };
  struct StreamHash {
    std::size_t operator()(const StorageStream& stream) const {
      return std::hash<void*>()(stream.native) ^ std::hash<std::uint64_t>()(stream.context);
    }
  };
  /// Returns a bound that covers the size, which can differ from the one that other threads have stored since.
  Result<SizeBound> query_size(const Size& size, const Query& query);
  static Result<SizeBound> raise(const SizeBound& mark, const Size& size, const Query& query);
  std::shared_ptr<StreamStorage> on(const StorageStream& stream);
  Status ensure_capacity(StreamStorage& here, const StorageStream& stream, const Size& size, const Query& query)
      KILN_REQUIRES(here.mutex);
  Status grow(StreamStorage& here, const StorageStream& stream, const SizeBound& needed) KILN_REQUIRES(here.mutex);
  Status release_all(StreamStorage& here, const StorageStream& stream) KILN_REQUIRES(here.mutex);

  const std::shared_ptr<StreamAllocator> memory_;
  Mutex mutex_;
  SizeBound expected_ KILN_GUARDED_BY(mutex_);
  std::unordered_map<StorageStream, std::shared_ptr<StreamStorage>, StreamHash> streams_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
