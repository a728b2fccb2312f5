// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/doctor/doctor_checks.hpp"
#include "backends/cuda/bundled_headers.hpp"
#include "backends/cuda/nvrtc_compiler.hpp"
#include "base/files/files.hpp"
#include "session/components.hpp"

namespace kiln::cli {

DoctorCheck check_bundled_headers(const Config& config) {
  DoctorCheck finding{DoctorCheck::State::Info, "bundled headers", {}, {}, {}};
  const std::string root = config.cache_path.empty() ? std::string() : config.cache_path.front();
  FileDigestCache digests(config.disable || root.empty() ? std::string() : root + "/v1/digests");
  const auto nvrtc = NvrtcCompiler(config.nvrtc, digests).identity({});
  if (!nvrtc || !has_bundled_headers(*nvrtc)) {
    finding.text = nvrtc ? "NVRTC " + nvrtc->version +
                               " bundles no headers: a unit that includes CUB or cuda_fp16.h needs "
                               "an include root that has them"
                         : "no NVRTC was selected";
    finding.advice = nvrtc ? "NVRTC 13.3 and later bundle them (pip install nvidia-cuda-nvrtc); docs/how-to/install.md"
                           : "see NVRTC above";
    return finding;
  }
  BundledHeaders bundled([&] { return bundled_headers_directory(config, root); }, {});
  const std::vector<IncludeRoot> roots = bundled.roots(*nvrtc);
  const std::string what = "NVRTC " + nvrtc->version + " bundles CUDA's headers and CCCL's (CUB, Thrust, libcu++)";
  if (roots.empty()) {
    finding.text = what + ", which are not used because there is no cache to install them next to";
    finding.advice =
        "enable the cache (KILN_DISABLE, KILN_CACHE_DIR), or give units an include root that has the headers";
    return finding;
  }
  const std::string& place = roots.back().path;
  const auto installed = bundled.is_installed(place);
  if (!installed) {
    finding.state = DoctorCheck::State::Problem;
    finding.text = what + ", which cannot be installed: " + installed.error().message;
    finding.advice = "remove " + place + "; the first unit that needs the headers installs them";
    return finding;
  }
  const char* const when = is_directory(place)
                               ? "; some files are missing, and the next unit that needs them installs them in "
                               : "; the first unit that needs them installs them in ";
  finding.state = DoctorCheck::State::Ok;
  finding.text = what + (*installed ? ", installed in " : when) + place;
  finding.advice = "nothing to do";
  return finding;
}

}  // namespace kiln::cli
