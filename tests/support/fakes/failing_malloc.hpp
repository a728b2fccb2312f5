// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace kiln::test {

/// The heap of a program that is linked with failing_malloc.cpp. Every allocation of the process goes through it,
/// including those of libraries and of operator new. Thread-safe.
class Heap {
 public:
  enum class Mode { Once, FromThenOn };
  /// Resets the count. The allocation with this number fails, or that one and all later ones.
  static void fail_at(std::uint64_t number, Mode mode);
  /// Ends the failures. Returns the number of failed allocations.
  static std::uint64_t give_back();
  /// Returns the number of allocations since the last fail_at.
  static std::uint64_t asked();
  /// Returns the number of blocks in use.
  static std::int64_t live();

  /// While an object of this class exists, allocations of this thread neither fail nor count: they belong to the test.
  class Spared {
   public:
    Spared();
    ~Spared();
    Spared(const Spared&) = delete;
    Spared& operator=(const Spared&) = delete;
  };
};

}  // namespace kiln::test
