// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "spatial/calibration_cases.hpp"
#include "spatial/commands.hpp"

namespace spatial {

kiln::Result<int> calibrate() {
  const auto asked = kiln::runtime::requested_calibration();
  if (!asked) {
    std::fputs("spatial: run this command with 'kiln calibrate -- spatial calibrate', which sets the output file\n",
               stderr);
    return 2;
  }
  kiln::Result<kiln::Session> session = kiln::Session::open();
  if (!session) return session.error();
  kiln::runtime::Runtime runtime(*session);
  const auto calibration = kiln::runtime::calibrate(runtime, calibration_cases(), asked->options);
  if (!calibration) return calibration.error();
  if (kiln::Status written = calibration->write(asked->path); !written) return written.error();
  return 0;
}

}  // namespace spatial
