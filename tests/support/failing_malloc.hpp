#pragma once

#include <cstdint>

namespace kiln::test {

/// The heap of a program that is linked with failing_malloc.cpp: every allocation of the whole process goes through it,
/// those of libraries and of operator new among them. Any thread.
class Heap {
 public:
  enum class Manner { Once, FromThenOn };
  /// Counts from one again. The allocation of this number fails, or it and all behind it.
  static void fail_at(std::uint64_t number, Manner manner);
  /// There is memory again; how often somebody was told that there is none.
  static std::uint64_t give_back();
  /// Allocations since the last fail_at.
  static std::uint64_t asked();
  /// Blocks that are in use.
  static std::int64_t live();

  /// While one lives, what this thread allocates neither fails nor counts: it is the test's own.
  class Spared {
   public:
    Spared();
    ~Spared();
    Spared(const Spared&) = delete;
    Spared& operator=(const Spared&) = delete;
  };
};

}  // namespace kiln::test
