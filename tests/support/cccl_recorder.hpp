#pragma once

#include <memory>

#include "support/cccl_record.hpp"
#include "vendor/cccl_library.hpp"

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
