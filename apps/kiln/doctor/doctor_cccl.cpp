#include <utility>

#include "apps/kiln/doctor/doctor_checks.hpp"
#include "backends/cccl/cccl_compiler.hpp"
#include "backends/cccl/cccl_library.hpp"
#include "base/files/file_digest_cache.hpp"

namespace kiln::cli {
namespace {

using State = DoctorCheck::State;

// CCCL_VERSION 3006000 is 3.6.0.
std::string version_text(int version) {
  if (version == 0) return "unknown";
  return std::to_string(version / 1'000'000) + '.' + std::to_string(version / 1000 % 1000) + '.' +
         std::to_string(version % 1000);
}

std::string release_text(const CcclCandidate& candidate) {
  return candidate.release != nullptr ? "cuda-cccl " + std::string(candidate.release->release)
                                      : "of an unsupported release";
}

void describe(const CcclCandidate& candidate, DoctorCheck& finding) {
  const auto row = [&](const char* what, std::string value) { finding.details.push_back({what, std::move(value)}); };
  row("what", "value");
  row("library", candidate.path);
  row("found by", candidate.found_via);
  row("release", release_text(candidate));
  row("build id", candidate.build_id.empty() ? "none" : candidate.build_id);
  row("supported", candidate.release != nullptr ? "yes" : "no");
  row("headers", candidate.headers.empty() ? "missing" : candidate.headers);
  row("header version", version_text(candidate.headers_version));
}

}  // namespace

DoctorCheck check_cccl(const Config& config) {
  DoctorCheck finding{State::Ok, "CCCL", {}, {}, {}};
  const Result<CcclCandidate> chosen = choose_cccl(config.cccl);
  if (!chosen) {
    // A missing library is a problem only if the user configured its path; other users may not need CCCL.
    finding.state = config.cccl.empty() ? State::Info : State::Problem;
    finding.text = "CCCL algorithms (scan, sort, reduce, …) cannot be compiled: " + chosen.error().message;
    finding.advice = config.cccl.empty() ? "only needed by programs that use them: pip install cuda-cccl"
                                         : "pip install cuda-cccl, and set its directory: KILN_CCCL=/path";
    return finding;
  }
  describe(*chosen, finding);
  for (const CcclCandidate& other : cccl_candidates(config.cccl)) {
    if (other.path != chosen->path) finding.details.push_back({"also found", other.path + ", " + release_text(other)});
  }
  if (std::string problem = chosen->unusable_reason(); !problem.empty()) {
    finding.state = State::Problem;
    finding.text = "CCCL algorithms cannot be compiled: " + std::move(problem);
    finding.advice = "pip install cuda-cccl==" + std::string(cccl_releases().front().release) +
                     ", or select another one with KILN_CCCL=/path";
    return finding;
  }
  FileDigestCache digests{std::string()};
  const Result<CompilerIdentity> identity = CcclCompiler(config.cccl, config.nvrtc, digests).identity({});
  if (!identity) {
    finding.state = State::Problem;
    finding.text = "the library is installed, but a dependency is missing: " + identity.error().message;
    finding.advice = "install a CUDA toolkit of version " + std::to_string(chosen->release->cuda);
    return finding;
  }
  const char* const requirements[] = {"driver or stub", "NVRTC", "nvJitLink"};
  for (std::size_t i = 0; i < identity->libraries.size() && i < std::size(requirements); ++i)
    finding.details.push_back({requirements[i], identity->libraries[i].empty() ? "missing" : identity->libraries[i]});
  if (identity->roots.size() > 1) finding.details.push_back({"toolkit headers", identity->roots[1].path});
  finding.text = "CCCL algorithms are compiled with the library of " + release_text(*chosen);
  finding.advice = "nothing to do";
  return finding;
}

}  // namespace kiln::cli
