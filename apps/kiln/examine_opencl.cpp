#include "apps/kiln/examine.hpp"
#include "vendor/opencl_library.hpp"

namespace kiln::cli {

Finding examine_opencl(bool& found) {
  Finding finding{Finding::State::Good, "OpenCL", {}, {}, {}};
  const auto devices = opencl_devices();
  found = devices.ok() && !devices->empty();
  if (!found) {
    finding.state = Finding::State::Note;
    finding.text = "OpenCL C cannot be compiled: " + (devices ? "there is no device" : devices.error().message);
    finding.advice =
        "fine if you do not need it; otherwise install your device's OpenCL driver (on a processor: PoCL, "
        "Debian package pocl-opencl-icd)";
    return finding;
  }
  finding.details.push_back({"device", "platform", "driver", "version"});
  for (const OpenClDeviceInfo& each : *devices) {
    finding.details.push_back({each.device, each.platform, each.driver, each.device_version});
  }
  finding.text = std::to_string(devices->size()) + (devices->size() == 1 ? " device" : " devices") +
                 "; OpenCL C is compiled for " + devices->front().device;
  finding.advice = "nothing to do";
  return finding;
}

}  // namespace kiln::cli
