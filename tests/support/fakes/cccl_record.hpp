// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace kiln::test {

/// The last arguments of a function of the recording library (cccl_recorder.cpp).
struct CcclRecord {
  const char* function = "";
  bool whole = false;  ///< the build result arrived unchanged
  void* storage = nullptr;
  std::size_t storage_bytes = 0;
  bool enough = false;
  std::size_t iterator_count = 0;
  void* iterators[8] = {};  ///< iterator states, in the order of the function's parameters
  std::size_t value_sizes[8] = {};
  std::size_t op_count = 0;
  void* op_states[2] = {};
  int op_kinds[2] = {};
  std::size_t value_count = 0;
  unsigned long values[4] = {};
  std::size_t number_count = 0;
  unsigned long numbers[6] = {};
  void* stream = nullptr;
};

/// Counters of the library and its configured result.
struct CcclCounts {
  int runs = 0;       ///< number of launches on a stream
  int questions = 0;  ///< number of storage size queries
  int outcome = 0;    ///< return value of every run
};

}  // namespace kiln::test

// Functions of the recording library.
extern "C" {
const kiln::test::CcclRecord* kiln_cccl_record();
kiln::test::CcclCounts* kiln_cccl_counts();
}
