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

/// Where temporary storage comes from, in the order of a stream. Any thread.
class TempMemory {
 public:
  virtual ~TempMemory() = default;
  virtual Result<void*> allocate(std::size_t bytes, void* stream) = 0;
  virtual Status release(void* memory, std::size_t bytes, void* stream) = 0;
  /// Whether the stream records a graph just now.
  virtual Result<bool> capturing(void* stream) = 0;
};

/// The temporary storage of one callable, a piece for each stream that it is used on. A piece grows with what calls
/// need and never shrinks, so that a program which has seen its largest size neither asks nor allocates any more; the
/// library is asked only where a size exceeds those that it was asked about before. It must need no more for less.
///
/// Any thread. A stream must live until this ends or `release` was called for it.
class TempStorage {
 public:
  /// How much a call has to do, in two numbers that storage may depend on.
  struct Size {
    std::uint64_t items = 0;
    std::uint64_t others = 0;
  };
  /// How many bytes a call of this size needs.
  using Query = std::function<Result<std::size_t>(const Size&)>;
  struct Piece {
    void* memory = nullptr;
    std::size_t bytes = 0;
  };

  explicit TempStorage(std::shared_ptr<TempMemory> memory) : memory_(std::move(memory)) {}
  ~TempStorage();
  TempStorage(const TempStorage&) = delete;
  TempStorage& operator=(const TempStorage&) = delete;

  /// Asks for what calls up to this size need: no stream's first call of such a size has to.
  Status expect(const Size& size, const Query& query);

  /// Runs with a piece that is large enough for a call of this size; `run` puts the call on the stream, before anybody
  /// else may have the piece given back in the stream's order. While the stream records a graph nothing is allocated:
  /// Code::Capturing where what is there does not do. What a graph was recorded with stays as it is until this ends.
  Status use(void* stream, const Size& size, const Query& query, const std::function<Status(const Piece&)>& run);

  /// Gives back what is kept for a stream that is about to end. Code::InvalidArgument where a graph was recorded with
  /// it.
  Status release(void* stream);

 private:
  /// What was asked: calls up to this size need at most so many bytes.
  struct Mark {
    Size size;
    std::size_t bytes = 0;
    bool asked = false;
    bool covers(const Size& other) const;
  };
  struct OnStream {
    Mutex mutex;
    Mark mark KILN_GUARDED_BY(mutex);                   // once there is a piece, the piece has its bytes
    Piece piece KILN_GUARDED_BY(mutex);                 // none before the first call
    bool recorded KILN_GUARDED_BY(mutex) = false;       // a graph has the piece
    std::vector<Piece> kept KILN_GUARDED_BY(mutex);     // what graphs have, and what could not be given back
    bool kept_recorded KILN_GUARDED_BY(mutex) = false;  // a graph has one of those
  };
  static Result<Mark> raise(const Mark& mark, const Size& size, const Query& query);
  std::shared_ptr<OnStream> on(void* stream);
  Status fit(OnStream& here, void* stream, const Size& size, const Query& query) KILN_REQUIRES(here.mutex);
  Status grow(OnStream& here, void* stream, const Mark& needed) KILN_REQUIRES(here.mutex);
  Status release_all(OnStream& here, void* stream) KILN_REQUIRES(here.mutex);

  const std::shared_ptr<TempMemory> memory_;
  Mutex mutex_;
  Mark expected_ KILN_GUARDED_BY(mutex_);
  std::unordered_map<void*, std::shared_ptr<OnStream>> streams_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
