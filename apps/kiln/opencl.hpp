#pragma once

#include <kiln/result.hpp>
#include <kiln/target.hpp>

#include "apps/kiln/doctor_report.hpp"

namespace kiln::cli {

/// The device that OpenCL sources are compiled for where nobody chose one.
Result<Target> default_opencl_target();

/// Which OpenCL devices there are; `found` says whether any is.
Finding examine_opencl(bool& found);

}  // namespace kiln::cli
