// SPDX-License-Identifier: Apache-2.0
// The driver and the devices of a backend, for the report of `kiln selftest`.
#include "apps/kiln/selftest/selftest_check.hpp"
#include "backends/cuda/cuda_api.hpp"
#include "backends/opencl/opencl_library.hpp"
#include "base/files/files.hpp"
#include "base/format.hpp"
#include "base/json.hpp"

namespace kiln::cli::selftest {
namespace {

// Returns the release of NVIDIA's kernel module, such as 550.54.14; empty if there is none.
std::string module_release() {
  const auto text = read_file("/proc/driver/nvidia/version");
  if (!text || !*text) return {};
  const std::string_view line = (*text)->view().substr(0, (*text)->view().find('\n'));
  constexpr std::string_view kBefore = "Kernel Module";
  const std::size_t at = line.find(kBefore);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = line.find_first_of("0123456789", at + kBefore.size());
  if (begin == std::string_view::npos) return {};
  return std::string(line.substr(begin, line.find_first_not_of("0123456789.", begin) - begin));
}

std::string cuda_driver_text(const Subject& subject) {
  const std::shared_ptr<const CudaApi> api = CudaApi::open(subject.driver).value();
  int version = 0;
  api->check("cuDriverGetVersion", (*api)->DriverGetVersion(&version)).value();
  const std::string cuda = "CUDA " + std::to_string(version / 1000) + '.' + std::to_string(version % 1000 / 10);
  if (!subject.driver.empty()) return cuda + ", a replaced driver";
  const std::string release = module_release();
  return release.empty() ? cuda : release + " (" + cuda + ")";
}

std::string opencl_driver_text() {
  const std::vector<OpenClDeviceInfo> devices = opencl_devices().value();
  const OpenClDeviceInfo& first = devices.front();
  return first.platform + ' ' + first.driver + ", " + first.device_version;
}

}  // namespace

Result<std::string> describe(const Subject& subject) {
  try {
    Session session = Session::open(subject.options()).value();
    const std::vector<DeviceInfo> devices = session.devices(subject.backend).value();
    if (devices.empty()) return Error{Code::Unavailable, "the driver lists no device", {}};
    Json listed = Json::array();
    for (const DeviceInfo& device : devices) {
      listed.push_back({{"name", device.name},
                        {"target", device.target.name()},
                        {"units", device.units},
                        {"memory", format_bytes(device.memory)},
                        {"cpu", device.is_cpu}});
    }
    const std::string driver = subject.backend == Backend::Cuda ? cuda_driver_text(subject) : opencl_driver_text();
    return json_text(Json{{"driver", driver}, {"devices", std::move(listed)}});
  } catch (const ResultError& thrown) {
    return thrown.error();
  }
}

}  // namespace kiln::cli::selftest
