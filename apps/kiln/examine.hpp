#pragma once

#include <string>
#include <vector>

#include "apps/kiln/doctor_report.hpp"
#include "session/config.hpp"

namespace kiln::cli {

// What the doctor looks at, one function each. They may open libraries, which nothing else in kiln does for a look.
Finding examine_nvrtc(const Config& config, bool& found);
Finding examine_driver();
/// NVIDIA's library of algorithms: whether there is one that this kiln knows, and all that it needs.
Finding examine_cccl(const Config& config);
/// Which OpenCL devices there are; `found` says whether any is.
Finding examine_opencl(bool& found);
Finding examine_worker(const Config& config);
/// Whether headers that units share are parsed once on this host, and if not why.
Finding examine_headers(const Config& config);
/// The `index`-th folder of the cache path.
Finding examine_cache(const Config& config, std::size_t index);
/// The bundles that are configured, and whether they are believed.
Finding examine_bundles(const Config& config);
/// The store that hosts share: whether it answers, and what this host may do there.
Finding examine_remote(const Config& config);
/// Where hosts agree on who compiles what.
Finding examine_lease(const Config& config);
Finding examine_configuration(const Config& config, const std::vector<std::string>& warnings);

}  // namespace kiln::cli
