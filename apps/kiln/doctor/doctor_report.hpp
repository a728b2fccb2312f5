// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace kiln::cli {

/// The result of one check of `kiln doctor`.
struct DoctorCheck {
  enum class State { Ok, Info, Problem };
  State state = State::Ok;
  std::string check;   ///< NVRTC, driver, CCCL, OpenCL, worker, cache, bundles, remote, lease, configuration
  std::string text;    ///< result of the check
  std::string advice;  ///< next step, or a statement that none is needed
  std::vector<std::vector<std::string>> details;  ///< table with details; the first row is the heading
};

struct DoctorReport {
  std::vector<DoctorCheck> findings;
  bool cuda = false;    ///< true if kiln can compile CUDA C++ on this machine
  bool opencl = false;  ///< true if kiln can compile OpenCL C on this machine

  bool usable() const { return cuda || opencl; }
};

}  // namespace kiln::cli
