#pragma once

#include <cstddef>

namespace kiln::test {

/// What a function of the recording library (cccl_recorder.cpp) was last given.
struct CcclRecord {
  const char* function = "";
  bool whole = false;  ///< the build result arrived as it was made
  void* storage = nullptr;
  std::size_t storage_bytes = 0;
  bool enough = false;
  std::size_t iterator_count = 0;
  void* iterators[8] = {};  ///< their states, in the order of the function's parameters
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

/// What it has counted, and what it will say.
struct CcclCounts {
  int runs = 0;       ///< how often something was put on a stream
  int questions = 0;  ///< how often it was only asked how much storage is needed
  int outcome = 0;    ///< what every run returns
};

}  // namespace kiln::test

// Of the recording library.
extern "C" {
const kiln::test::CcclRecord* kiln_cccl_record();
kiln::test::CcclCounts* kiln_cccl_counts();
}
