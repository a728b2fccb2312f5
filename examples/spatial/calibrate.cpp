#include <cstdio>

#include "spatial/commands.hpp"
#include "spatial/trials.hpp"

namespace spatial {

kiln::Result<int> calibrate() {
  const auto asked = kiln::runtime::calibration_asked_for();
  if (!asked) {
    std::fputs("spatial: this is for 'kiln calibrate -- spatial calibrate', which says where the result goes\n",
               stderr);
    return 2;
  }
  kiln::Result<kiln::Session> session = kiln::Session::open();
  if (!session) return session.error();
  kiln::runtime::Runtime runtime(*session);
  const auto calibration = kiln::runtime::calibrate(runtime, trials(), asked->options);
  if (!calibration) return calibration.error();
  if (kiln::Status written = calibration->write(asked->path); !written) return written.error();
  return 0;
}

}  // namespace spatial
