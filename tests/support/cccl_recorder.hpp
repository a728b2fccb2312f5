#pragma once

#include <cstddef>
#include <string>

#include "vendor/cccl_library.hpp"

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

}  // namespace kiln::test

// Of the recording library.
extern "C" {
const kiln::test::CcclRecord* kiln_cccl_record();
int& kiln_cccl_runs();          // how often something was put on a stream
int& kiln_cccl_questions();     // how often it was only asked how much storage is needed
int& kiln_cccl_next_outcome();  // what every run returns
}

namespace kiln::test {

/// The recording library in this process, in the place of NVIDIA's.
class CcclRecorder {
 public:
  CcclRecorder() {
    CcclCandidate candidate;
    candidate.path = KILN_CCCL_RECORDER;
    candidate.release = &cccl_releases().front();
    library_ = CcclLibrary::open(candidate, {}).value();
    const DynamicLibrary opened = DynamicLibrary::open(KILN_CCCL_RECORDER).value();
    opened.bind(record_, "kiln_cccl_record");
    opened.bind(runs_, "kiln_cccl_runs");
    opened.bind(questions_, "kiln_cccl_questions");
    opened.bind(outcome_, "kiln_cccl_next_outcome");
    runs() = questions() = next_outcome() = 0;
  }
  CcclBuild build(cccl::Algorithm algorithm) const {
    return CcclLibrary::deserialise(library_, algorithm, "nothing").value();
  }
  const CcclRecord& record() const { return *record_(); }
  int& runs() const { return runs_(); }
  int& questions() const { return questions_(); }
  int& next_outcome() const { return outcome_(); }

 private:
  std::shared_ptr<const CcclLibrary> library_;
  const CcclRecord* (*record_)() = nullptr;
  int& (*runs_)() = nullptr;
  int& (*questions_)() = nullptr;
  int& (*outcome_)() = nullptr;
};

}  // namespace kiln::test
