// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "apps/kiln/doctor/doctor_checks.hpp"
#include "backends/cccl/cccl_check.hpp"
#include "backends/cccl/cccl_compiler.hpp"
#include "backends/cccl/cccl_library.hpp"
#include "backends/cuda/nvrtc_library.hpp"
#include "base/files/file_digest_cache.hpp"
#include "session/components.hpp"

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
  return "cuda-cccl " + candidate.version + (candidate.release != nullptr ? "" : " (unknown to this version of kiln)");
}

void describe(const CcclCandidate& candidate, DoctorCheck& finding) {
  const auto row = [&](const char* what, std::string value) { finding.details.push_back({what, std::move(value)}); };
  row("what", "value");
  row("library", candidate.path);
  row("found by", candidate.found_via);
  row("release", release_text(candidate));
  row("build id", candidate.build_id.empty() ? "none" : candidate.build_id);
  const bool usable = candidate.unusable_reason().empty();
  row("supported", !usable ? "no" : candidate.release != nullptr ? "yes" : "compiling only, after a check");
  row("headers", candidate.headers.empty() ? "missing" : candidate.headers);
  row("header version", version_text(candidate.headers_version));
}

// Describes the results of the checks of a library of an unknown release that this host remembers.
void describe_checks(const Config& config, CcclCompiler& compiler, const CompilerIdentity& identity,
                     DoctorCheck& finding) {
  const std::string root = config.cache_path.empty() ? std::string() : config.cache_path.front();
  PchCache results({library_check_directory(config, root), 0, {}});
  std::string passed;
  std::string unchecked;
  for (int i = 0; i <= static_cast<int>(cccl::Algorithm::SegmentedSort); ++i) {
    const auto algorithm = static_cast<cccl::Algorithm>(i);
    const Unit unit = cccl_check_spec(algorithm).unit();
    const auto check = compiler.check_before({unit, Target::sm(kCcclCheckCapability), identity, "/"});
    if (!check) continue;
    const auto verdict = results.verdict(library_check_key(identity, *check));
    if (verdict && verdict->kind != PchVerdict::Kind::Good) {
      finding.state = State::Problem;
      finding.details.push_back({std::string("rejected: ") + to_string(algorithm), verdict->reason});
      continue;
    }
    std::string& list = verdict ? passed : unchecked;
    list += std::string(list.empty() ? "" : ", ") + to_string(algorithm);
  }
  finding.details.push_back({"passed the check", passed.empty() ? "none" : passed});
  finding.details.push_back({"not checked yet", unchecked.empty() ? "none" : unchecked});
}

DoctorCheck with_unknown_release(DoctorCheck finding, const CcclCandidate& library) {
  const bool rejected = finding.state == State::Problem;
  finding.text =
      "the library is of " + release_text(library) +
      (rejected ? ", and algorithms failed the check of its parameters, so that they cannot be compiled"
                : ": each algorithm is checked before its first compile, and calls use the program's own path");
  finding.advice = "pip install cuda-cccl==" + std::string(cccl_releases().front().release) +
                   ", or a kiln that knows this release, for calls";
  if (!rejected) finding.state = State::Info;
  return finding;
}

}  // namespace

DoctorCheck check_cccl(const Config& config) {
  DoctorCheck finding{State::Ok, "CCCL", {}, {}, {}};
  const Result<CcclCandidate> chosen = choose_cccl(config.cccl, nvrtc_major(config.nvrtc));
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
  const std::string root = config.cache_path.empty() ? std::string() : config.cache_path.front();
  BundledHeaders bundled([&] { return bundled_headers_directory(config, root); }, {});
  CcclCompiler compiler(config.cccl, config.nvrtc, digests, &bundled);
  const Result<CompilerIdentity> identity = compiler.identity({});
  if (!identity) {
    finding.state = State::Problem;
    finding.text = "the library is installed, but a dependency is missing: " + identity.error().message;
    finding.advice = "install a CUDA toolkit of version " + std::to_string(chosen->cuda);
    return finding;
  }
  const char* const requirements[] = {"driver or stub", "NVRTC", "nvJitLink"};
  for (std::size_t i = 0; i < identity->libraries.size() && i < std::size(requirements); ++i)
    finding.details.push_back({requirements[i], identity->libraries[i].empty() ? "missing" : identity->libraries[i]});
  if (identity->roots.size() > 1) finding.details.push_back({"toolkit headers", identity->roots[1].path});
  if (chosen->release == nullptr) {
    describe_checks(config, compiler, *identity, finding);
    return with_unknown_release(std::move(finding), *chosen);
  }
  finding.text = "CCCL algorithms are compiled with the library of " + release_text(*chosen);
  finding.advice = "nothing to do";
  return finding;
}

}  // namespace kiln::cli
