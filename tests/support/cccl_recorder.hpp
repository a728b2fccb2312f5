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
    opened.bind(counts_, "kiln_cccl_counts");
    *counts_() = {};
  }
  CcclBuild build(cccl::Algorithm algorithm) const {
    return CcclLibrary::deserialise(library_, algorithm, "nothing").value();
  }
  const CcclRecord& record() const { return *record_(); }
  int runs() const { return counts_()->runs; }
  int questions() const { return counts_()->questions; }
  void set_outcome(int outcome) const { counts_()->outcome = outcome; }

 private:
  std::shared_ptr<const CcclLibrary> library_;
  const CcclRecord* (*record_)() = nullptr;
  CcclCounts* (*counts_)() = nullptr;
};

}  // namespace kiln::test
