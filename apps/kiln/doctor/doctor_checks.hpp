// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "apps/kiln/doctor/doctor_report.hpp"
#include "session/config/config.hpp"

namespace kiln::cli {

// The checks of `kiln doctor`, one function each. They can open libraries, which no other command does only to inspect
// them.
DoctorCheck check_nvrtc(const Config& config, bool& found);
DoctorCheck check_driver();
/// Checks for a CCCL library of a supported release and its dependencies.
DoctorCheck check_cccl(const Config& config);
/// Lists the OpenCL devices. Sets `found` if there is one.
DoctorCheck check_opencl(bool& found);
DoctorCheck check_worker(const Config& config);
/// Checks if precompiled headers are available on this host.
DoctorCheck check_headers(const Config& config);
/// Checks if the selected NVRTC bundles headers, and if they are installed on this host.
DoctorCheck check_bundled_headers(const Config& config);
/// Checks the directory at `index` of the cache path.
DoctorCheck check_cache(const Config& config, std::size_t index);
/// Checks that the configured bundles can be opened and are trusted.
DoctorCheck check_bundles(const Config& config);
/// Checks that the remote store responds, and the role of this host.
DoctorCheck check_remote(const Config& config);
/// Checks that the lease table responds. Hosts use it to agree which host compiles a unit.
DoctorCheck check_lease(const Config& config);
DoctorCheck check_configuration(const Config& config, const std::vector<std::string>& warnings);

}  // namespace kiln::cli
