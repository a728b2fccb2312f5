#include <utility>

#include "apps/kiln/examine.hpp"
#include "base/file_digests.hpp"
#include "compile/cccl_compiler.hpp"
#include "vendor/cccl_library.hpp"

namespace kiln::cli {
namespace {

using State = Finding::State;

// CCCL_VERSION 3006000 is 3.6.0.
std::string version_text(int version) {
  if (version == 0) return "unknown";
  return std::to_string(version / 1'000'000) + '.' + std::to_string(version / 1000 % 1000) + '.' +
         std::to_string(version % 1000);
}

std::string release_text(const CcclCandidate& candidate) {
  return candidate.release != nullptr ? "cuda-cccl " + std::string(candidate.release->release)
                                      : "of a release that this kiln does not know";
}

void describe(const CcclCandidate& candidate, Finding& finding) {
  const auto row = [&](const char* what, std::string value) { finding.details.push_back({what, std::move(value)}); };
  row("what", "value");
  row("library", candidate.path);
  row("found by", candidate.found_by);
  row("release", release_text(candidate));
  row("build id", candidate.build_id.empty() ? "none" : candidate.build_id);
  row("known to this kiln", candidate.release != nullptr ? "yes" : "no");
  row("headers", candidate.headers.empty() ? "missing" : candidate.headers);
  row("version of the headers", version_text(candidate.headers_version));
}

}  // namespace

Finding examine_cccl(const Config& config) {
  Finding finding{State::Good, "CCCL", {}, {}, {}};
  const Result<CcclCandidate> chosen = choose_cccl(config.cccl);
  if (!chosen) {
    // Nobody who uses no algorithm misses it, except who said where it is.
    finding.state = config.cccl.empty() ? State::Note : State::Problem;
    finding.text = "NVIDIA's algorithms (scan, sort, reduce, …) cannot be compiled: " + chosen.error().message;
    finding.advice = config.cccl.empty() ? "fine unless a program uses them; else: pip install cuda-cccl"
                                         : "pip install cuda-cccl, and name the folder that it is in: KILN_CCCL=/path";
    return finding;
  }
  describe(*chosen, finding);
  for (const CcclCandidate& other : cccl_candidates(config.cccl)) {
    if (other.path != chosen->path) finding.details.push_back({"also here", other.path + ", " + release_text(other)});
  }
  if (std::string problem = chosen->problem(); !problem.empty()) {
    finding.state = State::Problem;
    finding.text = "NVIDIA's algorithms cannot be compiled: " + std::move(problem);
    finding.advice =
        "pip install cuda-cccl==" + std::string(cccl_releases().front().release) + ", or name another: KILN_CCCL=/path";
    return finding;
  }
  FileDigests digests{std::string()};
  const Result<CompilerIdentity> identity = CcclCompiler(config.cccl, config.nvrtc, digests).identity();
  if (!identity) {
    finding.state = State::Problem;
    finding.text = "the library is here, but it lacks what it needs: " + identity.error().message;
    finding.advice = "install a CUDA toolkit of version " + std::to_string(chosen->release->cuda);
    return finding;
  }
  const char* const needs[] = {"driver, or a stub of it", "NVRTC", "nvJitLink"};
  for (std::size_t i = 0; i < identity->libraries.size() && i < std::size(needs); ++i)
    finding.details.push_back({needs[i], identity->libraries[i].empty() ? "missing" : identity->libraries[i]});
  if (identity->roots.size() > 1) finding.details.push_back({"the toolkit's headers", identity->roots[1].path});
  finding.text = "NVIDIA's algorithms are compiled with the library of " + release_text(*chosen);
  finding.advice = "nothing to do";
  return finding;
}

}  // namespace kiln::cli
