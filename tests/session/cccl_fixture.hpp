// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <kiln/cccl.hpp>
#include <map>
#include <string>

#include "core/cccl_envelope.hpp"
#include "support/fakes/cuda_driver/control.hpp"
#include "support/fixtures/cccl_packages.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/toolkit.hpp"

namespace kiln::test {

/// A fixture with the driver double and code from NVIDIA's CCCL library. Skips if the library is not installed.
class CcclTest : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    if (cccl_package().empty()) GTEST_SKIP() << "cuda-cccl is not installed (tools/setup.sh)";
  }
  SessionOptions options(const std::string& library = cccl_package()) {
    SessionOptions made;
    made.settings = {{"cache.dir", shared_cache()},
                     {"driver", FakeCudaDriver::path()},
                     {"nvrtc", toolkit_nvrtc()},
                     {"cccl", library}};
    made.on_event = log_.callback();
    return made;
  }
  /// Returns a predefined spec, really compiled once for each target in the lifetime of the program.
  const Artifact& artifact(const std::string& name = "reduce_sum_i32", int capability = 80) {
    static std::map<std::pair<std::string, int>, Artifact> known;
    Artifact& found = known[{name, capability}];
    if (found.bytes.empty()) {
      Session session = Session::open(options()).value();
      found = session.artifact(cccl::find_predefined(name).value(), Target::sm(capability)).value();
    }
    return found;
  }
  static CcclEnvelope envelope_of(const Artifact& artifact) {
    return decode_cccl_envelope(artifact.bytes.view()).value();
  }
  static std::string shared_cache() {
    static const TemporaryDirectory directory;
    return directory.path("cache");
  }

  EventLog log_;
  FakeCudaDriver driver_{"sm_80"};
};

}  // namespace kiln::test
