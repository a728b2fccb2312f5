#pragma once

#include <string>
#include <vector>

namespace kiln::cli {

/// One thing that the doctor looked at.
struct Finding {
  enum class State { Good, Note, Problem };
  State state = State::Good;
  std::string about;   ///< NVRTC, driver, CCCL, OpenCL, worker, cache, bundles, remote, lease, configuration
  std::string text;    ///< what is so
  std::string advice;  ///< what to do, or that nothing needs to be done
  std::vector<std::vector<std::string>> details;  ///< a table below it
};

struct DoctorReport {
  std::vector<Finding> findings;
  bool useful = false;  ///< kiln can do something for its user here
};

}  // namespace kiln::cli
