// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kiln/result.hpp>
#include <kiln/target.hpp>
#include <kiln/unit.hpp>

#include "apps/kiln/arguments.hpp"
#include "session/config/config.hpp"
#include "session/config/manifest.hpp"

namespace kiln::cli {

/// A compile job: one file, one kernel of a family or one CCCL algorithm for one target.
struct Job {
  std::string file;  ///< path of the file, for a kernel of a family followed by its entry; or name of the algorithm
  Unit unit;
  Target target;
};

/// Returns the jobs that the unit options of compile and explain request, for every target: algorithms, units of the
/// manifest, files; each in the given order.
Result<std::vector<Job>> jobs_of(const Arguments& arguments);
/// As above, with a manifest that was already read. The manifest in the arguments is not read.
Result<std::vector<Job>> jobs_of(const Arguments& arguments, const Manifest& manifest);

/// Returns the `Job::file` of a unit of this source.
std::string job_file(const SourceUnit& source, const Unit& unit);

/// Returns the targets of `--arch` without duplicates; empty if the option is not given. `native` stands for the CUDA
/// devices of this machine: Code::Unavailable if there is none.
Result<std::vector<Target>> given_targets(const Arguments& arguments);

/// The targets of the devices of this host, which limit what it fetches. No devices mean no limit.
class DeviceLimit {
 public:
  /// There is no limit with `--arch`, on a host without CUDA devices, and on a host that publishes for others: one with
  /// a signing key that is not certified for a live namespace.
  static DeviceLimit of(const Arguments& arguments, const Config& config);
  /// Returns whether a device can use code for this target. Targets other than cubins, PTX and CCCL are not limited.
  bool admits(const Target& target) const;
  /// The devices as `sm_80, sm_90`; empty if there is no limit.
  std::string text() const;

 private:
  std::vector<Target> devices_;
};

}  // namespace kiln::cli
