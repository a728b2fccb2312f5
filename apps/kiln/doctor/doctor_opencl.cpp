// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/doctor/doctor_checks.hpp"
#include "backends/opencl/opencl_library.hpp"

namespace kiln::cli {

namespace {

const char* type_of(const OpenClDeviceInfo& device) {
  return device.gpu ? "GPU" : device.cpu ? "CPU device" : "accelerator";
}

}  // namespace

DoctorCheck check_opencl(bool& found) {
  DoctorCheck finding{DoctorCheck::State::Ok, "OpenCL", {}, {}, {}};
  const auto devices = opencl_devices();
  found = devices.has_value() && !devices->empty();
  if (!found) {
    finding.state = DoctorCheck::State::Info;
    finding.text = "OpenCL C cannot be compiled: " + (devices ? "no device found" : devices.error().message);
    finding.advice =
        "only needed for OpenCL programs: install the OpenCL driver of the device (for a CPU: PoCL, "
        "Debian package pocl-opencl-icd)";
    return finding;
  }
  finding.details.push_back({"device", "type", "platform", "driver", "version"});
  for (const OpenClDeviceInfo& each : *devices) {
    finding.details.push_back({each.device, type_of(each), each.platform, each.driver, each.device_version});
  }
  finding.text = std::to_string(devices->size()) + (devices->size() == 1 ? " device" : " devices") +
                 "; OpenCL C is compiled for " + devices->front().device +
                 (devices->front().cpu ? ", a CPU device" : "");
  finding.advice = devices->front().cpu
                       ? "nothing to do; the modes gpu and auto use a CPU device only with KILN_ALLOW_CPU_DEVICE=1"
                       : "nothing to do";
  return finding;
}

}  // namespace kiln::cli
