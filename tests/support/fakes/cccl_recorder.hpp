// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "backends/cccl/cccl_library.hpp"
#include "support/fakes/cccl_record.hpp"

namespace kiln::test {

/// The recording library, loaded in this process instead of NVIDIA's.
class CcclRecorder {
 public:
  CcclRecorder() {
    CcclCandidate candidate;
    candidate.path = KILN_CCCL_RECORDER;
    candidate.release = &cccl_releases().front();
    candidate.parameters = candidate.release;
    library_ = CcclLibrary::open(candidate, {}).value();
    const DynamicLibrary opened = DynamicLibrary::open(KILN_CCCL_RECORDER).value();
    opened.bind(record_, "kiln_cccl_record");
    opened.bind(counts_, "kiln_cccl_counts");
    *counts_() = {};
  }
  CcclBuild build(cccl::Algorithm algorithm) const {
    return CcclLibrary::deserialize(library_, algorithm, "nothing").value();
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
