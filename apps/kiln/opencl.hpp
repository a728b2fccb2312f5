#pragma once

#include <kiln/result.hpp>
#include <kiln/target.hpp>

#include "apps/kiln/doctor_report.hpp"
#include "session/config.hpp"

namespace kiln::cli {

/// The device that OpenCL sources are compiled for where nobody chose one.
Result<Target> default_opencl_target(const Config& config);

/// Which OpenCL devices there are; `found` says whether any is.
Finding examine_opencl(const Config& config, bool& found);

}  // namespace kiln::cli
